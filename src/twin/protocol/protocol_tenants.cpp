#include "twin/protocol/protocol_tenants.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "control/settings.hpp"

namespace orrery {
namespace {

constexpr std::array<FleetTypeId, 2> kColumns{FleetTypeId(0), kAllTypes};

std::int64_t devices_of(std::span<const PlacedGang> gangs) {
  std::int64_t devices = 0;
  for (const PlacedGang& gang : gangs) devices += gang.allocation.devices();
  return devices;
}

/// Whether the tenant is `above` or below it.
bool is_below(std::string_view tenant, std::string_view above) {
  if (above.empty() || tenant == above) return true;
  return tenant.starts_with(above) && tenant[above.size()] == '/';
}

}  // namespace

TenantAccounts::TenantAccounts(const State& state)
    : topology_(state.setup().topology), tree_(state.tenants()) {
  for (const Job& job : state.all_jobs()) {
    if (ended(job.phase)) continue;
    Account& account = jobs_[job.id];
    account.tenant = tree_.path(job.tenant);
    if (!holds_devices(job.phase)) continue;
    account.devices = devices_of(state.running(job.id).gangs);
    account.leaving = job.phase == JobPhase::kStopping;
  }
}

std::string TenantAccounts::take(const Event& event) {
  if (const auto* made = std::get_if<JobSubmitted>(&event)) {
    jobs_[made->job].tenant = tree_.path(made->submission.request.tenant);
  } else if (const auto* start = std::get_if<JobStarted>(&event)) {
    jobs_.at(start->job).leaving = false;
    jobs_.at(start->job).devices = devices_of(start->gangs);
    return within(start->job);
  } else if (const auto* resize = std::get_if<JobResized>(&event)) {
    const std::int64_t devices = devices_of(resize->gangs);
    const std::int64_t before = std::exchange(jobs_.at(resize->job).devices, devices);
    if (devices > before) return within(resize->job);
    if (devices < before) return taken(resize->job, resize->in_favour_of);
  } else if (const auto* stop = std::get_if<JobStopping>(&event)) {
    jobs_.at(stop->job).leaving = true;
    if (stop->reason == StopReason::kPreempted) return taken(stop->job, stop->in_favour_of);
  } else if (const auto* again = std::get_if<JobRequeued>(&event)) {
    jobs_.at(again->job).devices = 0;
  } else if (const auto* end = std::get_if<JobEnded>(&event)) {
    jobs_.erase(end->job);
  } else if (const auto* set = std::get_if<TenantsSet>(&event)) {
    Result<TenantTree> tree = tenants_from(set->yaml, *topology_);
    if (!tree) return "tenants were set that cannot be: " + tree.error().text();
    tree_ = *std::move(tree);
  }
  return {};
}

std::string TenantAccounts::within(JobId job) const {
  for (TenantId at = *tree_.find(jobs_.at(job).tenant); at.valid(); at = tree_.parent(at)) {
    std::string broken = above_limit(at);
    if (broken.empty()) broken = above_own(at);
    if (!broken.empty()) return fmt::format("job {} takes more: {}", job.value(), broken);
  }
  return {};
}

std::string TenantAccounts::above_limit(TenantId tenant) const {
  for (const FleetTypeId column : kColumns) {
    const std::int64_t limit = tree_.limit(tenant, column);
    if (limit == kUnlimited || held(tenant, Counted::kAll) <= limit) continue;
    return fmt::format("{} holds {} of at most {}", tree_.path(tenant), held(tenant, Counted::kAll),
                       limit);
  }
  return {};
}

/// A tenant that may not borrow is held to its own guarantee, or to that of its nearest ancestor
/// with one.
std::string TenantAccounts::above_own(TenantId tenant) const {
  if (!tenant.valid() || tree_.may_borrow(tenant)) return {};
  for (TenantId at = tenant; at.valid(); at = tree_.parent(at)) {
    bool has = false;
    for (const FleetTypeId column : kColumns) {
      const std::optional<std::int64_t> floor = tree_.guarantee(at, column);
      if (floor && held(at, Counted::kAll) <= *floor) return {};
      has = has || floor.has_value();
    }
    if (has) break;
  }
  return fmt::format("{} may not borrow and holds {}", tree_.path(tenant),
                     held(tenant, Counted::kAll));
}

std::string TenantAccounts::taken(JobId job, JobId in_favour_of) const {
  const auto winner = jobs_.find(in_favour_of);
  if (winner == jobs_.end()) return {};
  const Account& loser = jobs_.at(job);
  const TenantId from = *tree_.find(loser.tenant);
  const TenantId shared = tree_.common_ancestor(from, *tree_.find(winner->second.tenant));
  for (TenantId at = from; at != shared; at = tree_.parent(at)) {
    for (const FleetTypeId column : kColumns) {
      const std::optional<std::int64_t> floor = tree_.guarantee(at, column);
      if (!floor || held(at, Counted::kStaying) >= *floor) continue;
      return fmt::format("job {} yields to {}: {} is left with {} of {} guaranteed", job.value(),
                         winner->second.tenant, tree_.path(at), held(at, Counted::kStaying),
                         *floor);
    }
  }
  return {};
}

std::int64_t TenantAccounts::held(TenantId tenant, Counted counted) const {
  std::int64_t devices = 0;
  for (const auto& [id, account] : jobs_) {
    if (counted == Counted::kStaying && account.leaving) continue;
    if (is_below(account.tenant, tree_.path(tenant))) devices += account.devices;
  }
  return devices;
}

}  // namespace orrery

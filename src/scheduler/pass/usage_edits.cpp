#include "scheduler/pass/usage_edits.hpp"

#include <algorithm>

#include "scheduler/pass/running_gang.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

TenantUsage& UsageEdits::edit() {
  if (!copy_) copy_ = *usage_;
  return *copy_;
}

void UsageEdits::apply(const UsageChange& change) {
  if (usage_ == nullptr) return;
  edit().apply(change);
  ++changes_;
  changed_.push_back(change.tenant);
}

void UsageEdits::count(const JobRequest& job, std::span<const PlacedGang> gangs, Held held) {
  for (const PlacedGang& gang : gangs) {
    const GangRequest& request = request_of(job, gang);
    const auto devices = static_cast<std::int64_t>(request.devices);
    apply({job.tenant, request.type, rank_of(job), held == Held::kMore ? devices : -devices});
  }
}

bool UsageEdits::may_take_any(const JobRequest& request) const {
  if (policy_.quotas != Quotas::kHeld) return true;
  const auto allowed = [&](const GangOption& option) {
    return now().room(request.tenant, option.gang.type).devices >= option.gang.devices;
  };
  return std::all_of(request.roles.begin(), request.roles.end(), [&](const RoleRequest& role) {
    return std::all_of(role.options.begin(), role.options.end(), allowed);
  });
}

}  // namespace orrery

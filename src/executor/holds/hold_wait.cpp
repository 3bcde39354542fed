#include "executor/holds/hold_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format/field_writer.hpp"
#include "executor/holds/hold_demand.hpp"
#include "executor/holds/hold_use.hpp"
#include "executor/managers/lent_service.hpp"

namespace orrery {
namespace {

/// Returns the value that `share` of the values do not exceed. Precondition: there are some.
Duration quantile(const std::vector<Duration>& ascending, double share) {
  const double at = share * static_cast<double>(ascending.size() - 1);
  return ascending[static_cast<std::size_t>(std::lround(at))];
}

Duration rest_of(Duration whole, Duration passed) { return std::max(whole - passed, Duration()); }

bool waits(const Hold& hold) {
  return hold.state == HoldState::kAsked || hold.state == HoldState::kWaiting;
}

std::string waiting_text(const Hold& hold) {
  return fmt::format(
      "{} {}{}{}", text_of(hold.key), word_of(hold.state),
      hold.reason.empty() ? "" : fmt::format(" ({})", hold.reason),
      hold.start.in ? fmt::format(", expected to start in {}", hold.start.in->text()) : "");
}

/// Returns why a job fits no hold: its type, its time, or its number of nodes.
std::string why_too_large(const HoldLink& link, std::uint32_t manager, const AskingJob& job) {
  const HoldPool& pool = link.pools()[manager];
  HoldNodes all = pool.lent;
  all.most = std::numeric_limits<std::uint32_t>::max();
  const std::optional<JobNeeds> ever = needs_of(job.state, job.id, {all, Duration::max()});
  if (!ever)
    return fmt::format("none of the nodes of {} is of a type that it can use", pool.manager);
  const Duration usable = link.usable(manager);
  const std::optional<JobNeeds> needs = needs_of(job.state, job.id, {all, usable});
  if (!needs) {
    return fmt::format("it takes {}, and a hold of {} lasts {} less {}", ever->longest.text(),
                       pool.manager, pool.lent.time.text(), (pool.lent.time - usable).text());
  }
  const bool alone = pool.holds_for == HoldsFor::kOneJob;
  const std::uint32_t nodes =
      alone ? nodes_needed(*needs, all, *job.state.setup().topology) : needs->nodes;
  if (nodes > pool.lent.most) {
    return fmt::format("it needs {} nodes, and {} lends at most {}", nodes, pool.manager,
                       pool.lent.most);
  }
  const std::uint32_t drained = drained_nodes(pool, job.state, job.now).count;
  if (std::max(nodes, 1u) + drained <= pool.lent.nodes.size()) return {};
  return fmt::format("it needs {} of the {} nodes of {}, and {} are drained", std::max(nodes, 1u),
                     pool.lent.nodes.size(), pool.manager, drained);
}

/// Whether the manager may lend more nodes than its holds have or ask for.
bool has_room(const HoldLink& link, std::uint32_t manager) {
  const HoldPool& pool = link.pools()[manager];
  return held_nodes(link.holds(), manager) <
         std::min<std::size_t>(pool.lent.most, pool.lent.nodes.size());
}

/// Returns when a waiting hold is likely to start; none: there is no estimate.
std::optional<LikelyStart> likely_start(const Hold& hold, const std::optional<LikelyStart>& usual,
                                        Instant now) {
  const Duration waited = now - hold.since;
  if (hold.start.in) {
    const Duration late =
        usual ? std::max(*hold.start.in, rest_of(usual->late, waited)) : Duration::max();
    return LikelyStart{*hold.start.in, late};
  }
  // Past waits say nothing about a hold that has waited longer than nine of ten.
  if (!usual || waited > usual->late) return std::nullopt;
  return LikelyStart{rest_of(usual->median, waited), rest_of(usual->late, waited)};
}

}  // namespace

std::optional<LikelyStart> usual_wait(const ManagerState& manager) {
  if (manager.waits.empty()) return std::nullopt;
  constexpr double kMedian = 0.5;
  constexpr double kLate = 0.9;
  std::vector<Duration> waits = manager.waits;
  std::ranges::sort(waits);
  return LikelyStart{quantile(waits, kMedian), quantile(waits, kLate)};
}

std::vector<LikelyStart> lent_starts(const HoldLink& link, const State& state, JobId job,
                                     Instant now) {
  std::vector<LikelyStart> starts;
  starts.reserve(link.holds().size());
  for (std::uint32_t at = 0; at < link.pools().size(); ++at) {
    const ManagerState& manager = link.manager(at);
    if (link.pools()[at].use != PoolUse::kLent) continue;
    if (!manager.trouble.empty() || !manager.newer.empty()) continue;
    if (!why_not_asked(link, at, {state, job, now}).empty()) continue;
    const std::optional<LikelyStart> usual = usual_wait(manager);
    bool is_asked = false;
    for (const Hold& hold : link.holds()) {
      const bool serves = !hold.key.job || *hold.key.job == job.value();
      if (hold.manager != at || !waits(hold) || !serves) continue;
      is_asked = true;
      if (const auto start = likely_start(hold, usual, now)) starts.push_back(*start);
    }
    const bool asks = manager.refused.text.empty() && has_room(link, at);
    if (!is_asked && usual && asks) starts.push_back(*usual);
  }
  std::ranges::sort(starts, {}, &LikelyStart::median);
  return starts;
}

std::string why_not_asked(const HoldLink& link, std::uint32_t manager, const AskingJob& job) {
  const HoldPool& pool = link.pools()[manager];
  if (pool.use != PoolUse::kLent) return {};
  if (pool.lent.most == 0) return fmt::format("{} is to lend no nodes", pool.manager);
  return why_too_large(link, manager, job);
}

std::vector<std::string> hold_notes(const HoldLink& link, std::uint32_t manager,
                                    const AskingJob& job) {
  constexpr std::size_t kNamed = 4;
  const std::string& name = link.pools()[manager].manager;
  const ManagerState::Refused& refused = link.manager(manager).refused;
  std::vector<std::string> notes;
  if (const std::string why = why_not_asked(link, manager, job); !why.empty()) {
    notes.push_back(fmt::format("nothing is asked of {} for this job: {}", name, why));
  }
  std::size_t pilots = 0;
  std::size_t more = 0;
  for (const Hold& hold : link.holds()) {
    if (hold.manager != manager || !waits(hold)) continue;
    const bool named = hold.key.job ? *hold.key.job == job.id.value() : pilots++ < kNamed;
    if (named) notes.push_back(waiting_text(hold));
    if (!named) ++more;
  }
  if (more > 0) notes.push_back(fmt::format("{} more wait", more));
  if (!refused.text.empty() && !refused.is_of_job) {
    notes.push_back(fmt::format("{} refused a hold: {}", name, refused.text));
  }
  const auto own = refused.jobs.find(job.id.value());
  if (own != refused.jobs.end() && job.now < own->second.at) {
    const Duration wait = own->second.at - job.now;
    notes.push_back(fmt::format("{} refused a hold of this job: {}; the next request is in {}",
                                name, own->second.text, wait.text()));
  }
  return notes;
}

}  // namespace orrery

#include "executor/holds/hold_wait.hpp"

#include <algorithm>

#include "executor/holds/hold_demand.hpp"

namespace orrery {
namespace {

/// Returns the value that `share` of the values do not exceed. Precondition: there are some.
Duration quantile(const std::vector<Duration>& ascending, double share) {
  return ascending[static_cast<std::size_t>(share * static_cast<double>(ascending.size() - 1) +
                                            0.5)];
}

Duration rest_of(Duration whole, Duration passed) { return std::max(whole - passed, Duration()); }

/// Returns when a waiting hold is likely to start; none: there is no estimate.
std::optional<LikelyStart> likely_start(const Hold& hold, const std::optional<LikelyStart>& usual,
                                        Instant now) {
  const Duration waited = now - hold.since;
  if (hold.start.in) {
    const Duration late =
        usual ? std::max(*hold.start.in, rest_of(usual->late, waited)) : Duration::max();
    return LikelyStart{*hold.start.in, late};
  }
  if (!usual) return std::nullopt;
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
    const HoldPool& pool = link.pools()[at];
    const ManagerState& manager = link.manager(at);
    if (!manager.trouble.empty() || !manager.newer.empty()) continue;
    if (!needs_of(state, job, {pool.lent, link.usable(at)})) continue;
    const std::optional<LikelyStart> usual = usual_wait(manager);
    const std::size_t before = starts.size();
    for (const Hold& hold : link.holds()) {
      const bool waits = hold.state == HoldState::kAsked || hold.state == HoldState::kWaiting;
      const bool serves = !hold.key.job || *hold.key.job == job.value();
      if (hold.manager != at || !waits || !serves) continue;
      if (const auto start = likely_start(hold, usual, now)) starts.push_back(*start);
    }
    const bool asks = manager.refused.text.empty();
    if (starts.size() == before && usual && asks) starts.push_back(*usual);
  }
  std::ranges::sort(starts, {}, &LikelyStart::median);
  return starts;
}

}  // namespace orrery

#include "scheduler/rounds/turn_ends.hpp"

#include <algorithm>

#include "scheduler/price/run_time.hpp"
#include "scheduler/rounds/round_turns.hpp"

namespace orrery {
namespace {

/// Rounds that a gang waits before jobs that have only just started have to leave for it.
constexpr double kRoundsOfPatience = 2;

// Jobs of one device continually start on devices that come free, so the devices of a larger gang
// may never all belong to jobs that have run long enough.
bool a_gang_starves(const Situation& s, const Policy& policy) {
  if (s.history == nullptr) return false;
  const Duration patience =
      Duration::from_seconds(policy.full_interval.value() * kRoundsOfPatience);
  return std::any_of(s.waiting.begin(), s.waiting.end(), [&](const WaitingJob& job) {
    return takes_turns(*job.request) && devices_wanted(*job.request) > 1 &&
           s.now - s.history->past(job.id).waits_since >= patience;
  });
}

}  // namespace

Duration least_turn(const Situation& situation, const Policy& policy) {
  if (a_gang_starves(situation, policy)) return {};
  return Duration::from_seconds(policy.min_run.value());
}

// A job whose last checkpoint does not fit into the grace would repeat its work at each turn,
// unless it has written one since it started. A job that is not preemptible keeps what it has.
Instant turn_ends_from(const RunningJob& job, const Situation& situation, Duration least) {
  if (!job.request->preemptible || job.checkpoint == Duration::max()) return Instant::max();
  const bool saves_at_end = job.request->checkpoint_cost <= situation.grace;
  return job.started + (saves_at_end ? least : std::max(least, job.checkpoint));
}

}  // namespace orrery

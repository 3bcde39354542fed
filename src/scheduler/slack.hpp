// scheduler/slack.hpp - how long a job with a deadline may still wait, and who must let it pass.
//
// Pure. A deadline is no priority: a job goes before another only if it would start too late after
// the other's run, and only while it can be in time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

struct Slack {
  Duration left;    ///< deadline - now - expected run; negative: it will be late
  Duration margin;  ///< of `left`, for the unexpected

  [[nodiscard]] bool kept() const { return left >= Duration(); }
  /// For which it may wait before it has to start; negative: it is overdue.
  [[nodiscard]] Duration spare() const { return left - margin; }
};

/// Of a run of known length in so much time. The margin is a tenth of the length, at least
/// Policy::full_interval, after which all who wait are looked at again.
[[nodiscard]] Slack slack_after(Duration time, Duration run, const Policy& policy);

/// None: it has no deadline, it is a service, or nothing is known of its length. The expected run
/// is that of known_time_left().
[[nodiscard]] std::optional<Slack> slack_of(const WaitingJob& job, const Policy& policy,
                                            const Situation& situation);

/// The same of a running job if it waited from `now` on: with its restart.
[[nodiscard]] std::optional<Slack> slack_if_stopped(const RunningJob& job, const Policy& policy,
                                                    const Situation& situation);

/// "to meet its deadline it has to start within 2 h 10 min", or by how much it will be late.
[[nodiscard]] std::string slack_text(const Slack& slack);

/// In positions of the situation's waiting jobs, moves each job that has a slack and can be in time
/// before the first of its tenant and rank whose run, begun now, would outlast what it may wait; of
/// two with deadlines only the one that has to start later lets the other pass. Those who move to
/// the same place stand in the order in which they have to start. O(n log n); O(n) where no job has
/// a deadline.
void let_pressed_pass(const Situation& situation, const Policy& policy,
                      std::vector<std::uint32_t>& order);

}  // namespace orrery

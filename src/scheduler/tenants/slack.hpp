// scheduler/tenants/slack.hpp - how long a job with a deadline may still wait, and which jobs must
// let it pass.
//
// Pure. A deadline is not a priority: a job passes another only if it would start too late after
// the other's run, and only while it can still meet its deadline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

struct Slack {
  Duration left;    ///< deadline - now - expected run; negative: it will be late
  Duration margin;  ///< part of `left` reserved for the unexpected

  [[nodiscard]] bool kept() const { return left >= Duration(); }
  /// How long the job may wait before it has to start; negative: it is overdue.
  [[nodiscard]] Duration spare() const { return left - margin; }
};

/// Slack of a run of known length with `time` to its deadline. The margin is a tenth of the length,
/// but at least Policy::full_interval, after which all waiting jobs are considered again.
[[nodiscard]] Slack slack_after(Duration time, Duration run, const Policy& policy);

/// Slack of a waiting job; no value if it has no deadline, is a service, or has an unknown length.
/// The expected run is that of known_time_left().
[[nodiscard]] std::optional<Slack> slack_of(const WaitingJob& job, const Policy& policy,
                                            const Situation& situation);

/// Slack of a running job if it waited from `now` on, including its restart.
[[nodiscard]] std::optional<Slack> slack_if_stopped(const RunningJob& job, const Policy& policy,
                                                    const Situation& situation);

/// "to meet its deadline it has to start within 2 h 10 min", or by how much it will be late.
[[nodiscard]] std::string slack_text(const Slack& slack);

/// In `order`, positions of the situation's waiting jobs, moves each job that has a slack and can
/// still meet its deadline before the first job of its tenant and rank whose run, begun now, would
/// outlast the time it may wait. Of two jobs with deadlines only the one that has to start later
/// lets the other pass. Jobs that move to the same place are ordered by the time at which they have
/// to start. O(n log n); O(n) where no job has a deadline.
void let_pressed_pass(const Situation& situation, const Policy& policy,
                      std::vector<std::uint32_t>& order);

}  // namespace orrery

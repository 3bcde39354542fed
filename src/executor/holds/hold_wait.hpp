// executor/holds/hold_wait.hpp - estimates of when a resource manager will lend nodes for a job:
// from the manager's own estimates, else from how long earlier holds waited; and the reasons why
// none is asked for. api/ calls them for `explain` and `holds`.
//
// Pure in its inputs; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/holds/hold_link.hpp"
#include "scheduler/forecast/start_forecast.hpp"

namespace orrery {

/// Returns how long the newest holds of a manager waited, half of them and nine of ten; none: no
/// hold was granted yet. O(n log n) in the holds that are remembered.
[[nodiscard]] std::optional<LikelyStart> usual_wait(const ManagerState& manager);

/// Returns when the holds are likely to start whose nodes the job could use, the earliest first.
/// The n-th is the estimate for the n-th waiting job, and the last one that for all later jobs.
/// Empty: there is no estimate, or the job cannot run in a hold. O(holds log holds + managers x
/// options + nodes).
[[nodiscard]] std::vector<LikelyStart> lent_starts(const HoldLink& link, const State& state,
                                                   JobId job, Instant now);

/// A queued job, at a moment.
struct AskingJob {
  const State& state;
  JobId id;
  Instant now;
};

/// Returns why no hold is requested from a manager for a job, however long it waits: "it needs 40
/// nodes, and hpc lends at most 32". Empty: nothing prevents a hold, or the manager lends no nodes.
/// O(options + nodes).
[[nodiscard]] std::string why_not_asked(const HoldLink& link, std::uint32_t manager,
                                        const AskingJob& job);

/// Returns what the submitter of a job may know of the holds of a manager: why none is requested,
/// which pilots wait, and the state of the job's own hold. The holds of other jobs are counted but
/// not named, because other users' jobs may be private. O(holds + options + nodes).
[[nodiscard]] std::vector<std::string> hold_notes(const HoldLink& link, std::uint32_t manager,
                                                  const AskingJob& job);

}  // namespace orrery

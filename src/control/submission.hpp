// control/submission.hpp - a job as control receives it: resolved against the fleet, with the terms
// that only control uses. Made once by the receiver of the command (API, twin); immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/request/request.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// What an attempt needs before its ranks can start.
struct Preparation {
  std::uint32_t program = 0;  ///< compiled once for a target (program, type) and kept; 0: nothing
  Duration compile;           ///< time to compile for a new target
};

struct Submission {
  JobRequest request;
  RestartPolicy restart = RestartPolicy::kWhenSafe;
  /// Whether control chooses its checkpoint interval, by Young and Daly.
  bool choose_interval = false;
  std::uint32_t restart_max = 0;  ///< program faults after which it is still restarted
  std::vector<JobId> after;       ///< jobs that must have finished
  /// Jobs of request.array that may be active at a time; 0: all.
  std::uint32_t parallel = 0;
  Preparation prepare;
  std::vector<JobId> after_any;    ///< jobs that must have ended, in whatever way
  std::vector<JobId> after_notok;  ///< jobs that must have failed or been cancelled
  bool hold = false;               ///< whether it starts only after its owner releases it
};

/// What a job that waits for another one can expect.
enum class Dependency : std::uint8_t { kOpen, kMet, kNever };

enum class JobEnding : std::uint8_t { kFinished, kOther };

/// Returns the state of the condition under which `job` waits for `before`, now that `before` has
/// ended. Precondition: one of its three lists names `before`.
[[nodiscard]] Dependency dependency_after(const Submission& job, JobId before, JobEnding ending);

}  // namespace orrery

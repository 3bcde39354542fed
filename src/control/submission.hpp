// control/submission.hpp - a job as it is handed to control: resolved against the fleet, with what
// only control acts on. Made once by whoever takes the command (API, twin); immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/request.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

using ArrayId = Id<struct ArrayTag>;

/// What an attempt needs before its ranks can start.
struct Preparation {
  std::uint32_t program = 0;  ///< compiled once a target (program, type) and kept; 0: nothing
  Duration compile;           ///< on a target that has it not yet
};

struct Submission {
  JobRequest request;
  RestartPolicy restart = RestartPolicy::kWhenSafe;
  /// Its interval between checkpoints is control's to choose, by Young and Daly.
  bool choose_interval = false;
  std::uint32_t restart_max = 0;  ///< program faults it survives
  std::vector<JobId> after;       ///< jobs that must have finished
  ArrayId array;                  ///< none: not part of one
  std::uint32_t parallel = 0;     ///< of the array at a time; 0: all
  Preparation prepare;
  std::vector<JobId> after_any;    ///< jobs that must have ended, in whatever way
  std::vector<JobId> after_notok;  ///< jobs that must have failed or been cancelled
  bool hold = false;               ///< it does not start before its owner releases it
};

/// What a job that waits for another one can expect of it.
enum class Dependency : std::uint8_t { kOpen, kMet, kNever };

enum class JobEnding : std::uint8_t { kFinished, kOther };

/// Whether the condition under which `job` waits for `before` is met, or never will be, now that
/// `before` has ended. Precondition: one of its three lists names `before`.
[[nodiscard]] Dependency dependency_after(const Submission& job, JobId before, JobEnding ending);

}  // namespace orrery

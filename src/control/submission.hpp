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
  std::uint32_t restart_max = 3;  ///< program faults it survives
  std::vector<JobId> after;       ///< jobs that must have finished
  ArrayId array;                  ///< none: not part of one
  std::uint32_t parallel = 0;     ///< of the array at a time; 0: all
  Preparation prepare;
};

}  // namespace orrery

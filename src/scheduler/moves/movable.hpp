// scheduler/moves/movable.hpp - which running jobs a pass may move to other devices.
#pragma once

#include <cstdint>

#include "scheduler/pass/pass_context.hpp"
#include "scheduler/request/job_array.hpp"

namespace orrery {

/// Whether a job can go on elsewhere after it was stopped.
[[nodiscard]] inline bool may_be_moved(const RunningJob& job) {
  return job.request->preemptible || job.request->checkpoint_interval != Duration::max();
}

/// Whether the pass may choose other devices for a running job: it has run for Policy::min_run, and
/// a place for its gang can be chosen without regard to other gangs.
[[nodiscard]] inline bool is_movable(const PassContext& pass, std::uint32_t running) {
  const RunningJob& job = pass.situation.running[running];
  return !pass.is_decided(running) && !job.stopping && job.gangs.size() == 1 &&
         !keeps_distance(*job.request) &&
         pass.situation.now - job.started >= Duration::from_seconds(pass.policy.min_run.value());
}

}  // namespace orrery

// scheduler/pass/running_gang.hpp - what a placed gang asked for, and what is lost when a running
// job stops.
#pragma once

#include "scheduler/situation.hpp"

namespace orrery {

/// The request of a gang of a job: that of the option that it has.
[[nodiscard]] inline const GangRequest& request_of(const JobRequest& job, const PlacedGang& gang) {
  return job.roles[gang.role].options[gang.option].gang;
}

/// Device-seconds of work that a job repeats if it stops at `now`: since its last checkpoint, the
/// checkpoint itself, the restart. A job that may be stopped still holds all it asked for, so
/// requests are counted, not devices.
[[nodiscard]] inline double lost_device_seconds(const RunningJob& job, Instant now) {
  const double each = job.at_risk(now).count_seconds() + job.request->restart.count_seconds() +
                      job.request->checkpoint_cost.count_seconds();
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : job.gangs) devices += request_of(*job.request, gang).devices;
  return each * devices;
}

}  // namespace orrery

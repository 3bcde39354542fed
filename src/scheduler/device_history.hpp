// scheduler/device_history.hpp - for how long jobs have had devices of each type.
//
// Implemented by whoever keeps meters; a Situation refers to it. Invariant: it only grows with the
// time. Cost of a look: O(types the job has had).
#pragma once

#include "base/id.hpp"
#include "base/time.hpp"
#include "fleet/ids.hpp"

namespace orrery {

using JobId = Id<struct JobTag>;

class DeviceHistory {
 public:
  DeviceHistory() = default;
  DeviceHistory(const DeviceHistory&) = delete;
  DeviceHistory& operator=(const DeviceHistory&) = delete;
  virtual ~DeviceHistory() = default;

  /// Device-seconds of a type that a job has had up to `now`. Precondition: the job waits or runs.
  [[nodiscard]] virtual double device_seconds(JobId job, FleetTypeId type, Instant now) const = 0;
};

}  // namespace orrery

// scheduler/device_history.hpp - device time by type and attempts of jobs until now.
//
// The control state, which keeps meters, implements it; a Situation refers to it. Invariant: the
// values of a job only grow with time, except `waits_since`. Cost of a look-up: O(types the job has
// had).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "base/time.hpp"
#include "fleet/ids.hpp"

namespace orrery {

using JobId = Id<struct JobTag>;

/// The time for which shares hold. For max-min shares: from one change of the jobs present to a
/// later one. For deadline shares: a round (round_turns.hpp).
struct SharePeriod {
  Instant since;
  /// Ascending: the jobs present when it began; for deadline shares: the admitted jobs.
  std::vector<JobId> jobs;
  /// Device-seconds of a type that jobs had before the period; no entry: 0.
  std::map<std::pair<JobId, FleetTypeId>, double> had;
};

/// Attempts of a job.
struct JobPast {
  std::uint32_t starts = 0;
  Instant waits_since;  ///< meaningful for a job that waits
};

class DeviceHistory {
 public:
  DeviceHistory() = default;
  DeviceHistory(const DeviceHistory&) = delete;
  DeviceHistory& operator=(const DeviceHistory&) = delete;
  DeviceHistory(DeviceHistory&&) = default;
  DeviceHistory& operator=(DeviceHistory&&) = default;
  virtual ~DeviceHistory() = default;

  /// Device-seconds of a type that a job has had up to `now`. Precondition: the job waits or runs.
  [[nodiscard]] virtual double device_seconds(JobId job, FleetTypeId type, Instant now) const = 0;
  /// Precondition: the job waits or runs.
  [[nodiscard]] virtual JobPast past(JobId job) const = 0;
  [[nodiscard]] virtual const SharePeriod& share_period() const = 0;
};

}  // namespace orrery

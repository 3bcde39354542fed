// control/core/core_timers.hpp - when jobs and maintenance windows need the core next.
//
// Timers are not in the state: a core that resumes sets them again. One that has become pointless
// still fires; its handler checks what holds by then. Cost: O(log timers).
#pragma once

#include <compare>
#include <optional>
#include <set>

#include "base/time.hpp"
#include "scheduler/device_history.hpp"

namespace orrery {

class CoreTimers {
 public:
  struct Timer {
    Instant at;
    JobId job;  ///< none: a maintenance window
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };

  void set(Instant at, JobId job) { timers_.insert({at, job}); }
  void set_window(Instant at) { timers_.insert({at, JobId()}); }
  /// When the first timer is due; max: there is none.
  [[nodiscard]] Instant next() const {
    return timers_.empty() ? Instant::max() : timers_.begin()->at;
  }
  /// Removes and returns the first timer that is due, by time, then job.
  [[nodiscard]] std::optional<Timer> take_due(Instant now) {
    if (timers_.empty() || timers_.begin()->at > now) return {};
    return timers_.extract(timers_.begin()).value();
  }

 private:
  std::set<Timer> timers_;
};

}  // namespace orrery

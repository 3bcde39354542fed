#include "twin/outages/fault_schedule.hpp"

#include <utility>

namespace orrery {

std::optional<Fault> FaultSchedule::take_next() {
  if (failures_ && !drawn_) drawn_ = failures_->next(Instant::max());
  const bool scripted =
      taken_ < scripted_.size() && (!drawn_ || scripted_[taken_].at <= drawn_->at);
  return scripted ? scripted_[taken_++] : std::exchange(drawn_, std::nullopt);
}

}  // namespace orrery

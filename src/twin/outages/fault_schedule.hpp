// twin/outages/fault_schedule.hpp - the faults of a world in the order of time: those that its
// caller has written down, and those drawn at random.
//
// Owned by the World. Of a written and a drawn fault at one instant, the written one comes first.
// Cost: that of FailureModel::next.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "twin/faults/failure_model.hpp"

namespace orrery {

class FaultSchedule {
 public:
  /// `failures`: none, if nothing breaks by chance; `scripted`: by time.
  FaultSchedule(std::optional<FailureModel> failures, std::vector<Fault> scripted)
      : failures_(std::move(failures)), scripted_(std::move(scripted)) {}

  /// Takes the next fault; none: there is no further one.
  [[nodiscard]] std::optional<Fault> take_next();

 private:
  std::optional<FailureModel> failures_;
  std::optional<Fault> drawn_;  ///< drawn and not taken yet
  std::vector<Fault> scripted_;
  std::size_t taken_ = 0;  ///< of `scripted_`
};

}  // namespace orrery

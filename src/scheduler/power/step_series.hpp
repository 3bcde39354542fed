// scheduler/power/step_series.hpp - a quantity that is constant from one instant to the next: a
// price of electricity, carbon of the grid, a cap.
//
// A value, immutable once made; the first step also holds before its time, the last one forever
// after. Values may be negative, as prices are when the grid has a surplus. Invariant: at least one
// step, times strictly ascending, values finite. Cost: O(log n) for each query.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace orrery {

template <class Value>
class StepSeries {
 public:
  struct Step {
    Instant from;
    Value value;
  };

  /// Errors: no step, times that do not ascend, a value that is not finite.
  [[nodiscard]] static Result<StepSeries> make(std::vector<Step> steps);

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] Value at(Instant time) const { return steps_[step_at(time)].value; }

  /// Mean over [from, to), weighted by time; at(from) if they are equal. Precondition: from <= to.
  [[nodiscard]] Value mean(Instant from, Instant to) const;

 private:
  StepSeries() = default;
  [[nodiscard]] std::size_t step_at(Instant time) const;
  /// Integral over seconds from the first step's time to `time`, negative before it.
  [[nodiscard]] double integral_to(Instant time) const;

  std::vector<Step> steps_;
  std::vector<double> integral_;  ///< integral up to the start of each step
};

extern template class StepSeries<DollarsPerJoule>;
extern template class StepSeries<GramsCo2PerJoule>;
extern template class StepSeries<Watts>;

}  // namespace orrery

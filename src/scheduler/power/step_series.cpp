#include "scheduler/power/step_series.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {

template <class Value>
Result<StepSeries<Value>> StepSeries<Value>::make(std::vector<Step> steps) {
  if (steps.empty()) return input_error({}, "a series without a step: expected at least one");
  StepSeries series;
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].value.value())) {
      return input_error(
          {}, fmt::format("the value from {} on is not a finite number", steps[i].from.text()));
    }
    if (i > 0 && steps[i].from <= steps[i - 1].from) {
      return input_error({}, fmt::format("the step of {} follows that of {}: expected a later time",
                                         steps[i].from.text(), steps[i - 1].from.text()));
    }
    if (i > 0) {
      sum += steps[i - 1].value.value() * (steps[i].from - steps[i - 1].from).count_seconds();
    }
    series.integral_.push_back(sum);
  }
  series.steps_ = std::move(steps);
  return series;
}

template <class Value>
std::size_t StepSeries<Value>::step_at(Instant time) const {
  const auto later = std::upper_bound(steps_.begin(), steps_.end(), time,
                                      [](Instant t, const Step& step) { return t < step.from; });
  return later == steps_.begin() ? 0 : static_cast<std::size_t>(later - steps_.begin()) - 1;
}

template <class Value>
double StepSeries<Value>::integral_to(Instant time) const {
  const std::size_t i = step_at(time);
  return integral_[i] + steps_[i].value.value() * (time - steps_[i].from).count_seconds();
}

template <class Value>
Value StepSeries<Value>::mean(Instant from, Instant to) const {
  ORRERY_ASSERT(from <= to, "a mean is asked over time that runs forward");
  const std::size_t first = step_at(from);
  // Within one step the value itself, free of rounding.
  if (from == to || step_at(to) == first) return steps_[first].value;
  return Value((integral_to(to) - integral_to(from)) / (to - from).count_seconds());
}

template class StepSeries<DollarsPerJoule>;
template class StepSeries<GramsCo2PerJoule>;
template class StepSeries<Watts>;

}  // namespace orrery

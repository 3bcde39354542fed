#include "report/plot/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/numbers/math.hpp"
#include "base/quantity.hpp"
#include "base/text/quantity_text.hpp"
#include "base/time.hpp"
#include "report/plot/nice_step.hpp"
#include "report/plot/time_ticks.hpp"

namespace orrery {
namespace {

constexpr double kLn10 = 2.302585092994045684;

struct Prefix {
  double factor = 1;
  std::string_view text;
};

constexpr std::array<Prefix, 5> kPrefixes = {
    {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};

// A plain count keeps four digits before it takes a prefix.
Prefix prefix_of(double magnitude, double threshold) {
  Prefix best;
  for (const Prefix& prefix : kPrefixes) {
    if (magnitude >= prefix.factor * threshold) best = prefix;
  }
  return best;
}

Prefix prefix_of(const Axis& axis, const ValueRange& range) {
  const double magnitude = std::max(std::abs(range.min), std::abs(range.max));
  switch (axis.unit) {
    case AxisUnit::kCount:
    case AxisUnit::kMoney:
      return magnitude < 1e4 ? Prefix{} : prefix_of(magnitude, 1);
    case AxisUnit::kPhysical:
      return prefix_of(magnitude, 1);
    case AxisUnit::kShare:
    case AxisUnit::kDuration:
    case AxisUnit::kElapsed:
    case AxisUnit::kCalendar:
      return {};
  }
  return {};
}

int decimals_of(double step) {
  int decimals = 0;
  while (decimals < 9 && std::abs(std::round(step) - step) > step * 1e-6) {
    step *= 10;
    ++decimals;
  }
  return decimals;
}

std::string amount_label(const Axis& axis, double value, const Prefix& prefix, int decimals) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value) / prefix.factor, decimals);
  const std::string_view sign = value < 0 ? "-" : "";
  const std::string_view count = prefix.factor == 1e9 ? "B" : prefix.text;
  switch (axis.unit) {
    case AxisUnit::kCount:
      return fmt::format("{}{}{}", sign, digits, value == 0 ? "" : count);
    case AxisUnit::kMoney:
      return fmt::format("{}${}{}", sign, digits, value == 0 ? "" : count);
    case AxisUnit::kShare:
      return fmt::format("{}{} %", sign, digits);
    case AxisUnit::kPhysical:
    case AxisUnit::kDuration:
    case AxisUnit::kElapsed:
    case AxisUnit::kCalendar:
      return fmt::format("{}{}", sign, digits);
  }
  return digits;
}

bool is_time(AxisUnit unit) {
  return unit == AxisUnit::kDuration || unit == AxisUnit::kElapsed || unit == AxisUnit::kCalendar;
}

std::string title_of(const Axis& axis, const ValueRange& range) {
  if (axis.unit == AxisUnit::kCalendar) {
    return fmt::format("{} (UTC), {} to {}", axis.title, date_text(range.min),
                       date_text(range.max));
  }
  if (axis.symbol.empty()) return axis.title;
  const std::string_view prefix =
      axis.unit == AxisUnit::kPhysical ? prefix_of(axis, range).text : std::string_view();
  return fmt::format("{} ({}{})", axis.title, prefix, axis.symbol);
}

double step_of(AxisUnit unit, double span, std::size_t ticks_max) {
  return is_time(unit) ? clock_step(span, ticks_max) : nice_step(span, ticks_max);
}

ValueRange widened(const Axis& axis, ValueRange range) {
  if (axis.scale == AxisScale::kLog) {
    range.max = std::max(range.max, 1e-6);
    // A logarithmic axis covers at most nine decades; more cannot be told apart.
    range.min = std::max(range.min, range.max * 1e-9);
    if (range.max < range.min * 1.01) return {range.min / 2, range.max * 2};
    return range;
  }
  const double least = std::max(std::max(std::abs(range.min), std::abs(range.max)) * 1e-9, 1e-9);
  if (range.max - range.min > least) return range;
  if (range.min == 0) return {0, 1};
  const double half = std::abs(range.min) / 2;
  return is_time(axis.unit) ? ValueRange{range.min, range.min + 1}
                            : ValueRange{range.min - half, range.max + half};
}

}  // namespace

std::optional<ValueRange> range_of(std::span<const double> values) {
  std::optional<ValueRange> range;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (!range) range = ValueRange{value, value};
    range->min = std::min(range->min, value);
    range->max = std::max(range->max, value);
  }
  return range;
}

std::optional<ValueRange> joined(std::optional<ValueRange> a, std::optional<ValueRange> b) {
  if (!a || !b) return a ? a : b;
  return ValueRange{std::min(a->min, b->min), std::max(a->max, b->max)};
}

FittedAxis::FittedAxis(const Axis& axis, const ValueRange& data, const AxisFit& fit)
    : axis_(axis), range_(data) {
  const bool rounded = fit.ends == AxisEnds::kRounded && axis.scale == AxisScale::kLinear;
  if (rounded) range_ = {std::min(data.min, 0.0), std::max(data.max, 0.0)};
  range_ = widened(axis, range_);
  if (rounded) {
    const double step = step_of(axis.unit, range_.max - range_.min, fit.ticks_max);
    range_ = {std::floor(range_.min / step) * step, std::ceil(range_.max / step) * step};
  }
  title_ = title_of(axis_, range_);
  mark(fit.ticks_max);
}

double FittedAxis::part(double value) const {
  if (std::isnan(value)) return value;
  const double inside = std::clamp(value, range_.min, range_.max);
  if (axis_.scale == AxisScale::kLog) {
    return math::log(inside / range_.min) / math::log(range_.max / range_.min);
  }
  return (inside - range_.min) / (range_.max - range_.min);
}

void FittedAxis::mark(std::size_t ticks_max) {
  if (axis_.scale == AxisScale::kLog) return mark_logarithms(ticks_max);
  const double span = range_.max - range_.min;
  switch (axis_.unit) {
    case AxisUnit::kDuration:
    case AxisUnit::kElapsed:
      ticks_ = elapsed_ticks(range_, clock_step(span, ticks_max));
      return;
    case AxisUnit::kCalendar:
      ticks_ = calendar_ticks(range_, ticks_max);
      return;
    case AxisUnit::kCount:
    case AxisUnit::kPhysical:
    case AxisUnit::kMoney:
    case AxisUnit::kShare:
      return mark_amounts(nice_step(span, ticks_max));
  }
}

std::string value_text(const Axis& axis, double value) {
  if (!std::isfinite(value)) return "-";
  switch (axis.unit) {
    case AxisUnit::kCount:
    case AxisUnit::kPhysical: {
      const Prefix prefix = prefix_of(axis, {value, value});
      const std::string digits = fmt::format("{:.4g}", value / prefix.factor);
      if (axis.symbol.empty()) return fmt::format("{}{}", digits, prefix.text);
      return axis.unit == AxisUnit::kCount
                 ? fmt::format("{}{} {}", digits, prefix.text, axis.symbol)
                 : fmt::format("{} {}{}", digits, prefix.text, axis.symbol);
    }
    case AxisUnit::kMoney:
      return print(Dollars(value));
    case AxisUnit::kShare:
      return fmt::format("{:.4g} %", value * 100);
    case AxisUnit::kDuration:
    case AxisUnit::kElapsed:
      return print(Seconds(value));
    case AxisUnit::kCalendar:
      return Instant::from_ns(Duration::from_seconds(value).count_ns()).text();
  }
  return {};
}

std::string interval_text(const Axis& axis, double value, double half) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kUnits = {
      {{172'800, "d"}, {7'200, "h"}, {120, "min"}, {1, "s"}}};
  constexpr std::array<double, 4> kSeconds = {86'400, 3'600, 60, 1};
  const bool time = axis.unit == AxisUnit::kDuration || axis.unit == AxisUnit::kElapsed;
  if (time && std::isfinite(value) && std::abs(value) >= 1) {
    std::size_t unit = 0;
    while (std::abs(value) < kUnits[unit].first) ++unit;
    return fmt::format("{:.4g} {} ± {:.4g} {}", value / kSeconds[unit], kUnits[unit].second,
                       half / kSeconds[unit], kUnits[unit].second);
  }
  return value_text(axis, value) + " ± " + value_text(axis, half);
}

void FittedAxis::mark_amounts(double step) {
  Prefix prefix = prefix_of(axis_, range_);
  if (axis_.unit == AxisUnit::kShare) prefix.factor = 0.01;
  const int decimals = decimals_of(step / prefix.factor);
  for (double i = std::ceil(range_.min / step - 1e-9); i * step <= range_.max + step * 1e-9; ++i) {
    const double value = i * step;
    ticks_.push_back({value, amount_label(axis_, value, prefix, decimals)});
  }
}

void FittedAxis::mark_logarithms(std::size_t ticks_max) {
  if (is_time(axis_.unit)) {
    ticks_ = duration_decades(range_);
    if (ticks_.size() < 2) ticks_ = elapsed_ticks(range_, clock_step(range_.max - range_.min, 4));
    return;
  }
  const double decades = math::log(range_.max / range_.min) / kLn10;
  const double stride = std::ceil(decades / static_cast<double>(ticks_max));
  for (double k = std::ceil(math::log(range_.min) / kLn10 - 1e-9);; k += stride) {
    const double value = math::pow(10, k);
    if (value > range_.max * (1 + 1e-9)) break;
    const Prefix prefix = prefix_of(value, 1);
    ticks_.push_back(
        {value, amount_label(axis_, value, prefix, decimals_of(value / prefix.factor))});
  }
  if (ticks_.size() < 2) {
    ticks_.clear();
    mark_amounts(nice_step(range_.max - range_.min, 4));
  }
}

}  // namespace orrery

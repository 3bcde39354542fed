// report/plot/axis.hpp - what the numbers of an axis are, where they lie on it and how its ticks
// read.
//
// Values are in base units: seconds for every axis of time (since the epoch for kCalendar), 1 for a
// whole share. An axis picks the step of its ticks and the prefix of its unit by the range it is
// fitted to, from microseconds to centuries. Values; equal input gives equal text.
// Invariant: a fitted axis has a finite range of positive length. Cost: O(ticks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace orrery {

enum class AxisUnit : std::uint8_t {
  kCount,     ///< "20k"; `symbol` stands in the title: "GPU-h"
  kPhysical,  ///< "1.5"; the title bears symbol and prefix: "MW"
  kMoney,     ///< "$20k"
  kShare,     ///< "40 %"
  kDuration,  ///< "10 min"
  kElapsed,   ///< as kDuration: time since a beginning
  kCalendar,  ///< "14:00", "3 Oct": UTC
};

enum class AxisScale : std::uint8_t { kLinear, kLog };

struct Axis {
  std::string title;
  AxisUnit unit = AxisUnit::kCount;
  std::string symbol = {};
  AxisScale scale = AxisScale::kLinear;
};

struct ValueRange {
  double min = 0;
  double max = 0;

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// The range of the finite values; none where there are none.
[[nodiscard]] std::optional<ValueRange> range_of(std::span<const double> values);
[[nodiscard]] std::optional<ValueRange> joined(std::optional<ValueRange> a,
                                               std::optional<ValueRange> b);

struct AxisTick {
  double value = 0;
  std::string label;
};

/// Where a linear axis ends: at the values, or at the ticks that enclose zero and them.
enum class AxisEnds : std::uint8_t { kExact, kRounded };

struct AxisFit {
  AxisEnds ends = AxisEnds::kExact;
  std::size_t ticks_max = 6;
};

/// An axis over a range.
class FittedAxis {
 public:
  /// A range without length is widened, and a logarithmic one begins above zero: values at or below
  /// zero then lie at its foot.
  FittedAxis(const Axis& axis, const ValueRange& data, const AxisFit& fit);

  /// Where the value lies: 0 at the foot of the range, 1 at its top, clamped. NaN stays NaN.
  [[nodiscard]] double part(double value) const;
  [[nodiscard]] const ValueRange& range() const { return range_; }
  [[nodiscard]] const Axis& axis() const { return axis_; }
  /// Ascending, inside the range, at most about ticks_max.
  [[nodiscard]] const std::vector<AxisTick>& ticks() const { return ticks_; }
  /// The title, with the unit where the labels do not carry it: "power (MW)".
  [[nodiscard]] const std::string& title() const { return title_; }

 private:
  void mark(std::size_t ticks_max);
  void mark_amounts(double step);
  void mark_logarithms(std::size_t ticks_max);

  Axis axis_;
  ValueRange range_;
  std::vector<AxisTick> ticks_;
  std::string title_;
};

/// One value of an axis with its unit, to four digits: "12.3k GPU-h", "1.25 MW", "41.2 %", "2.5 h";
/// "-" when it is not finite.
[[nodiscard]] std::string value_text(const Axis& axis, double value);

/// A value and half of its interval, times in the unit of the value: "106 min ± 127 min".
[[nodiscard]] std::string interval_text(const Axis& axis, double value, double half);

}  // namespace orrery

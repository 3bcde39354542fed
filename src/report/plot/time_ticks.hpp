// report/plot/time_ticks.hpp - ticks of time axes: steps of clocks and calendars, and their labels.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/plot/axis.hpp"

namespace orrery {

/// The least step of a clock (1 s, 15 min, 6 h, 7 d, 1 y, ..) that divides `span` seconds into at
/// most `count_max` parts. Precondition: span > 0.
[[nodiscard]] double clock_step(double span, std::size_t count_max);

/// At multiples of `step`, in the largest unit that divides it: "90 s", "36 h", "2 y". A year has
/// 365 days.
[[nodiscard]] std::vector<AxisTick> elapsed_ticks(const ValueRange& seconds, double step);

/// At round times of the UTC calendar: "14:00", "3 Oct", "Oct", "2018". Seconds since the epoch.
/// Midnight is the name of its day, the begin of a year its number.
[[nodiscard]] std::vector<AxisTick> calendar_ticks(const ValueRange& seconds,
                                                   std::size_t count_max);

/// The decades people know of a duration: 1 s, 10 s, 1 min, 10 min, 1 h, 10 h, 1 d, 7 d, 30 d, 1 y.
[[nodiscard]] std::vector<AxisTick> duration_decades(const ValueRange& seconds);

/// "3 Oct 2017".
[[nodiscard]] std::string date_text(double seconds);

}  // namespace orrery

#include "report/plot/time_ticks.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "report/plot/nice_step.hpp"

namespace orrery {
namespace {

constexpr double kMinute = 60;
constexpr double kHourSeconds = 3600;
constexpr double kDay = 86400;
constexpr double kYear = 365 * kDay;

constexpr std::array<double, 28> kSteps = {1,
                                           2,
                                           5,
                                           10,
                                           15,
                                           30,
                                           kMinute,
                                           120,
                                           300,
                                           600,
                                           900,
                                           1800,
                                           kHourSeconds,
                                           2 * kHourSeconds,
                                           3 * kHourSeconds,
                                           6 * kHourSeconds,
                                           12 * kHourSeconds,
                                           kDay,
                                           2 * kDay,
                                           7 * kDay,
                                           14 * kDay,
                                           30 * kDay,
                                           60 * kDay,
                                           90 * kDay,
                                           180 * kDay,
                                           365 * kDay,
                                           2 * kYear,
                                           5 * kYear};

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Unit {
  double seconds;
  std::string_view symbol;
};
constexpr std::array<Unit, 5> kUnits = {
    {{kYear, "y"}, {kDay, "d"}, {kHourSeconds, "h"}, {kMinute, "min"}, {1, "s"}}};

Unit unit_of(double step) {
  for (const Unit& unit : kUnits) {
    const double count = step / unit.seconds;
    if (count >= 1 && count == std::floor(count)) return unit;
  }
  return kUnits.back();
}

std::chrono::year_month_day date_of(double seconds) {
  const auto day = static_cast<std::int64_t>(std::floor(seconds / kDay));
  return std::chrono::sys_days(std::chrono::days(day));
}

double seconds_of(const std::chrono::year_month_day& date) {
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * kDay;
}

std::string_view month_of(const std::chrono::year_month_day& date) {
  return kMonths[static_cast<unsigned>(date.month()) - 1];
}

std::string day_label(double seconds) {
  const auto date = date_of(seconds);
  return fmt::format("{} {}", static_cast<unsigned>(date.day()), month_of(date));
}

std::string month_label(double seconds) {
  const auto date = date_of(seconds);
  if (date.month() == std::chrono::January) return std::to_string(static_cast<int>(date.year()));
  return std::string(month_of(date));
}

std::string clock_label(double seconds, double step) {
  const double in_day = seconds - std::floor(seconds / kDay) * kDay;
  if (in_day == 0) return day_label(seconds);
  const auto whole = static_cast<int>(in_day);
  if (step >= kMinute) return fmt::format("{:02}:{:02}", whole / 3600, whole / 60 % 60);
  return fmt::format("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::vector<AxisTick> month_ticks(const ValueRange& seconds, int months) {
  std::vector<AxisTick> ticks;
  const auto first = date_of(seconds.min);
  auto month = first.year() / std::chrono::January;
  for (;;) {
    const double at = seconds_of(month / 1);
    if (at > seconds.max) return ticks;
    if (at >= seconds.min) ticks.push_back({at, month_label(at)});
    month += std::chrono::months(months);
  }
}

std::vector<AxisTick> year_ticks(const ValueRange& seconds, int years) {
  std::vector<AxisTick> ticks;
  int year = static_cast<int>(date_of(seconds.min).year()) / years * years;
  for (;; year += years) {
    const double at = seconds_of(std::chrono::year(year) / 1 / 1);
    if (at > seconds.max) return ticks;
    if (at >= seconds.min) ticks.push_back({at, std::to_string(year)});
  }
}

}  // namespace

double clock_step(double span, std::size_t count_max) {
  const double least = span / static_cast<double>(count_max);
  if (least < 1) return nice_step(span, count_max);
  for (const double step : kSteps) {
    if (step >= least) return step;
  }
  return nice_step(span / kYear, count_max) * kYear;
}

std::vector<AxisTick> elapsed_ticks(const ValueRange& seconds, double step) {
  std::vector<AxisTick> ticks;
  const Unit unit = unit_of(step);
  for (double i = std::ceil(seconds.min / step); i * step <= seconds.max; ++i) {
    const double value = i * step;
    ticks.push_back({value, fmt::format("{:.6g} {}", value / unit.seconds, unit.symbol)});
  }
  return ticks;
}

std::vector<AxisTick> calendar_ticks(const ValueRange& seconds, std::size_t count_max) {
  const double step = clock_step(seconds.max - seconds.min, count_max);
  if (step >= kYear) return year_ticks(seconds, static_cast<int>(step / kYear));
  if (step > 14 * kDay) {
    return month_ticks(seconds, step == 180 * kDay  ? 6
                                : step == 90 * kDay ? 3
                                : step == 60 * kDay ? 2
                                                    : 1);
  }
  // Weeks begin on Mondays; the epoch was a Thursday.
  const double origin = step >= 7 * kDay ? 4 * kDay : 0;
  std::vector<AxisTick> ticks;
  for (double i = std::ceil((seconds.min - origin) / step); origin + i * step <= seconds.max; ++i) {
    const double at = origin + i * step;
    ticks.push_back({at, step >= kDay ? day_label(at) : clock_label(at, step)});
  }
  return ticks;
}

std::vector<AxisTick> duration_decades(const ValueRange& seconds) {
  static constexpr std::array<double, 13> kDecades = {
      1e-3, 1e-2,     0.1,       1,    10, kMinute, 600, kHourSeconds, 10 * kHourSeconds,
      kDay, 7 * kDay, 30 * kDay, kYear};
  std::vector<AxisTick> ticks;
  for (const double value : kDecades) {
    if (value < seconds.min || value > seconds.max) continue;
    const Unit unit = value == 7 * kDay ? Unit{kDay, "d"} : unit_of(value);
    ticks.push_back({value, value < 1
                                ? fmt::format("{:.6g} ms", value * 1e3)
                                : fmt::format("{:.6g} {}", value / unit.seconds, unit.symbol)});
  }
  return ticks;
}

std::string date_text(double seconds) {
  const auto date = date_of(seconds);
  return fmt::format("{} {} {}", static_cast<unsigned>(date.day()), month_of(date),
                     static_cast<int>(date.year()));
}

}  // namespace orrery

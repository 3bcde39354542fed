#include <fmt/format.h>

#include <array>
#include <chrono>

#include "tokens/chat/template_renderer.hpp"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

struct CivilTime {
  int year = 0;
  unsigned month = 0;  ///< from 0
  unsigned day = 0;
  unsigned weekday = 0;     ///< from Sunday
  std::int64_t second = 0;  ///< of the day
};

CivilTime civil(std::int64_t seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  return {static_cast<int>(date.year()), static_cast<unsigned>(date.month()) - 1,
          static_cast<unsigned>(date.day()), std::chrono::weekday(days).c_encoding(),
          (time - days).count()};
}

std::string directive(char kind, const CivilTime& time) {
  const std::int64_t hour = time.second / 3600;
  const std::int64_t hour12 = hour % 12 == 0 ? 12 : hour % 12;
  switch (kind) {
    case 'Y':
      return fmt::format("{}", time.year);
    case 'y':
      return fmt::format("{:02}", time.year % 100);
    case 'm':
      return fmt::format("{:02}", time.month + 1);
    case 'd':
      return fmt::format("{:02}", time.day);
    case 'e':
      return fmt::format("{:>2}", time.day);
    case 'B':
      return std::string(kMonths[time.month]);
    case 'b':
      return std::string(kMonths[time.month].substr(0, 3));
    case 'A':
      return std::string(kDays[time.weekday]);
    case 'a':
      return std::string(kDays[time.weekday].substr(0, 3));
    case 'H':
      return fmt::format("{:02}", hour);
    case 'I':
      return fmt::format("{:02}", hour12);
    case 'p':
      return hour < 12 ? "AM" : "PM";
    case 'M':
      return fmt::format("{:02}", time.second / 60 % 60);
    case 'S':
      return fmt::format("{:02}", time.second % 60);
    case 'F':
      return fmt::format("{}-{:02}-{:02}", time.year, time.month + 1, time.day);
    case 'T':
      return fmt::format("{:02}:{:02}:{:02}", hour, time.second / 60 % 60, time.second % 60);
    case '%':
      return "%";
    default:
      template_fault(fmt::format("the time format \"%{}\" is not supported", kind));
  }
}

}  // namespace

std::string formatted_time(std::string_view format, std::int64_t seconds) {
  const CivilTime time = civil(seconds);
  std::string text;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      text += format[i];
    } else {
      text += directive(format[++i], time);
    }
  }
  return text;
}

}  // namespace orrery

#include "base/time.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace orrery {

Duration Duration::from_seconds(double s) {
  const double ns = s * 1e9;
  if (std::isnan(ns)) return Duration();
  if (ns >= 9.2e18) return max();
  if (ns <= -9.2e18) return Duration(kMin);
  return Duration(std::llround(ns));
}

std::string Duration::text() const {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{86'400'000'000'000, "d"},
                                                  {3'600'000'000'000, "h"},
                                                  {60'000'000'000, "min"},
                                                  {1'000'000'000, "s"}}};
  if (ns_ < 0) return ns_ == kMin ? "-" + max().text() : "-" + Duration(-ns_).text();
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    if (ns_ < kUnits[i].ns) continue;
    const std::int64_t small = ns_ % kUnits[i].ns / kUnits[i + 1].ns;
    const std::string large = fmt::format("{} {}", ns_ / kUnits[i].ns, kUnits[i].name);
    return small == 0 ? large : fmt::format("{} {} {}", large, small, kUnits[i + 1].name);
  }
  const double ns = static_cast<double>(ns_);
  if (ns_ >= 1'000'000'000) return fmt::format("{:.4g} s", ns * 1e-9);
  if (ns_ >= 1'000'000) return fmt::format("{:.4g} ms", ns * 1e-6);
  if (ns_ >= 1'000) return fmt::format("{:.4g} us", ns * 1e-3);
  return fmt::format("{} ns", ns_);
}

namespace {

struct Date {
  std::int64_t year;
  std::int64_t month;
  std::int64_t day;
};

// Days since 1970-01-01 to a civil date; the 400-year cycle of the Gregorian calendar has 146,097
// days, and counting from March puts the leap day at the end of the year.
Date date_of(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const std::int64_t day_of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted_month = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const std::int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

}  // namespace

std::string Instant::text() const {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = ns() / kSecond;
  std::int64_t fraction = ns() % kSecond;
  if (fraction < 0) {
    fraction += kSecond;
    --seconds;
  }
  std::int64_t days = seconds / 86'400;
  std::int64_t rest = seconds % 86'400;
  if (rest < 0) {
    rest += 86'400;
    --days;
  }
  const Date date = date_of(days);
  const std::string whole =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.year, date.month, date.day,
                  rest / 3600, rest / 60 % 60, rest % 60);
  return fraction == 0 ? whole + "Z" : fmt::format("{}.{:09}Z", whole, fraction);
}

}  // namespace orrery

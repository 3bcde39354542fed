#include "base/time.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "base/text/utf8.hpp"

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
  if (ns_ == 0) return "0 s";
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

// The inverse of date_of, for years from 0. A day past the end of its month counts on.
std::int64_t days_to(const Date& date) {
  const std::int64_t year = date.month <= 2 ? date.year - 1 : date.year;
  const std::int64_t shifted_month = date.month > 2 ? date.month - 3 : date.month + 9;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * shifted_month + 2) / 5 + date.day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719'468;
}

// What is left of a text that is read from its front; anything unexpected fails for good.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  void skip(char expected) { expect_any({&expected, 1}); }

  char expect_any(std::string_view expected) {
    const bool there = !rest_.empty() && expected.find(rest_.front()) != expected.npos;
    if (!there) return fail();
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }

  std::int64_t digits(int count) {
    std::int64_t value = 0;
    for (int i = 0; i < count; ++i) value = value * 10 + (expect_any("0123456789") - '0');
    return value;
  }

  // Nanoseconds of ".5": the digits up to the ninth.
  std::int64_t fraction() {
    if (!rest_.starts_with('.')) return 0;
    skip('.');
    std::int64_t value = digits(1);
    std::int64_t unit = 100'000'000;
    for (value *= unit; unit > 1 && next_is_digit(); value += unit * digits(1)) unit /= 10;
    return value;
  }

  [[nodiscard]] bool at_end() const { return !failed_ && rest_.empty(); }

 private:
  [[nodiscard]] bool next_is_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  char fail() {
    failed_ = true;
    rest_ = {};
    return '0';
  }

  std::string_view rest_;
  bool failed_ = false;
};

// Returns the offset of a zone that is "Z" or an offset; none: there is no such offset.
std::optional<std::int64_t> scan_offset_seconds(Scanner& scanner) {
  const char sign = scanner.expect_any("Z+-");
  if (sign == 'Z') return 0;
  const std::int64_t hours = scanner.digits(2);
  scanner.skip(':');
  const std::int64_t minutes = scanner.digits(2);
  if (hours > 23 || minutes > 59) return std::nullopt;
  return (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
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

Result<Instant> Instant::parse(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return input_error({}, fmt::format("\"{}\" {}; expected a time such as "
                                       "\"2026-12-01T00:00:00Z\" or \"...+02:00\"",
                                       printable(text, 60), why));
  };
  Scanner scanner(text);
  Date date{};
  date.year = scanner.digits(4);
  scanner.skip('-');
  date.month = scanner.digits(2);
  scanner.skip('-');
  date.day = scanner.digits(2);
  scanner.skip('T');
  const std::int64_t hour = scanner.digits(2);
  scanner.skip(':');
  const std::int64_t minute = scanner.digits(2);
  scanner.skip(':');
  const std::int64_t second = scanner.digits(2);
  const std::int64_t fraction = scanner.fraction();
  const std::optional<std::int64_t> offset = scan_offset_seconds(scanner);
  if (!scanner.at_end()) return refuse("is not a time");
  const bool in_calendar = date.month >= 1 && date.month <= 12 && date.day >= 1 &&
                           date_of(days_to(date)).day == date.day;
  if (!in_calendar) return refuse("names a day that no calendar has");
  if (hour > 23 || minute > 59 || second > 59 || !offset) {
    return refuse("names an hour, a minute, a second or an offset that no clock has");
  }
  __extension__ using Wide = __int128;
  const std::int64_t seconds = days_to(date) * 86'400 + hour * 3600 + minute * 60 + second;
  const Wide exact = Wide{seconds - *offset} * 1'000'000'000 + fraction;
  if (exact != static_cast<std::int64_t>(exact)) {
    return refuse("is before 1677-09-21 or after 2262-04-11");
  }
  return from_ns(static_cast<std::int64_t>(exact));
}

}  // namespace orrery

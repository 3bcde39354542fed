// base/time_test.cpp - saturating arithmetic, and the text of durations and dates.
#include "base/time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

constexpr Duration ns(std::int64_t n) { return Duration::nanoseconds(n); }
std::string date(std::int64_t seconds) { return (Instant() + Duration::seconds(seconds)).text(); }

TEST(Duration, CountsInNanoseconds) {
  EXPECT_EQ(Duration::milliseconds(3).count_ns(), 3'000'000);
  EXPECT_EQ(Duration::seconds(3).count_ns(), 3'000'000'000);
  EXPECT_EQ(Duration::minutes(2), Duration::seconds(120));
  EXPECT_EQ(Duration::hours(2), Duration::minutes(120));
  EXPECT_DOUBLE_EQ(Duration::milliseconds(1500).count_seconds(), 1.5);
}

TEST(Duration, RoundsSecondsToTheNearestNanosecond) {
  EXPECT_EQ(Duration::from_seconds(1.5), Duration::milliseconds(1500));
  EXPECT_EQ(Duration::from_seconds(0.6e-9), ns(1));
  EXPECT_EQ(Duration::from_seconds(-0.6e-9), ns(-1));
  EXPECT_EQ(Duration::from_seconds(0.4e-9), ns(0));
  EXPECT_EQ(Duration::from_seconds(1e300), Duration::max());
  EXPECT_EQ(Duration::from_seconds(-1e300), ns(kMin));
  EXPECT_EQ(Duration::from_seconds(INFINITY), Duration::max());
  EXPECT_EQ(Duration::from_seconds(std::nan("")), Duration());
}

TEST(Duration, SaturatesInsteadOfOverflowing) {
  EXPECT_EQ(Duration::max() + ns(1), Duration::max());
  EXPECT_EQ(ns(kMin) + ns(-1), ns(kMin));
  EXPECT_EQ(ns(kMin) - ns(1), ns(kMin));
  EXPECT_EQ(ns(kMax) - ns(-1), Duration::max());
  EXPECT_EQ(ns(0) - ns(kMin), Duration::max());
  EXPECT_EQ(-ns(kMin), Duration::max());
  EXPECT_EQ(ns(kMax / 2) * 3, Duration::max());
  EXPECT_EQ(ns(kMax / 2) * -3, ns(kMin));
  EXPECT_EQ(ns(kMin) * -1, Duration::max());
  EXPECT_EQ(Duration::hours(kMax), Duration::max());
}

TEST(Duration, AgreesWithWideArithmeticHeldToItsRange) {
  __extension__ using Wide = __int128;
  Rng rng = Rng::stream(1, "time");
  const auto held = [](Wide exact) {
    return ns(static_cast<std::int64_t>(exact > kMax ? kMax : exact < kMin ? kMin : exact));
  };
  const auto draw = [&] {
    const auto bits = static_cast<std::int64_t>(rng.next_u64());
    return bits >> rng.below(64);
  };
  for (int i = 0; i < 100'000; ++i) {
    const std::int64_t a = draw();
    const std::int64_t b = draw();
    ASSERT_EQ(ns(a) + ns(b), held(static_cast<Wide>(a) + b)) << a << " + " << b;
    ASSERT_EQ(ns(a) - ns(b), held(static_cast<Wide>(a) - b)) << a << " - " << b;
    ASSERT_EQ(ns(a) * b, held(static_cast<Wide>(a) * b)) << a << " * " << b;
  }
}

TEST(Duration, AddsInPlace) {
  Duration sum = Duration::seconds(1);
  sum += Duration::milliseconds(500);
  EXPECT_EQ(sum, Duration::milliseconds(1500));
}

TEST(Duration, IsShownInAtMostTwoUnits) {
  EXPECT_EQ(ns(0).text(), "0 s");
  EXPECT_EQ(ns(999).text(), "999 ns");
  EXPECT_EQ(ns(1500).text(), "1.5 us");
  EXPECT_EQ(Duration::milliseconds(250).text(), "250 ms");
  EXPECT_EQ(Duration::milliseconds(1500).text(), "1.5 s");
  EXPECT_EQ(Duration::seconds(60).text(), "1 min");
  EXPECT_EQ(Duration::seconds(90).text(), "1 min 30 s");
  EXPECT_EQ(Duration::minutes(150).text(), "2 h 30 min");
  EXPECT_EQ(Duration::hours(49).text(), "2 d 1 h");
  EXPECT_EQ((Duration::hours(48) + Duration::minutes(59)).text(), "2 d");
  EXPECT_EQ((-Duration::milliseconds(1500)).text(), "-1.5 s");
  EXPECT_EQ(ns(kMin).text(), "-" + Duration::max().text());
}

TEST(Instant, NeverStaysNever) {
  EXPECT_EQ(Instant::max() + Duration::seconds(1), Instant::max());
  EXPECT_LT(Instant::from_ns(kMax - 1), Instant::max());
}

TEST(Instant, MovesByDurationsAndLiesThatFarApart) {
  const Instant noon = Instant::from_ns(1000);
  EXPECT_EQ((noon + ns(5)).ns(), 1005);
  EXPECT_EQ((noon - ns(5)).ns(), 995);
  EXPECT_EQ(noon + ns(5) - noon, ns(5));
  EXPECT_EQ(Instant::max() - Instant::from_ns(-1), Duration::max());
}

TEST(Instant, IsShownAsADateOfTheGregorianCalendar) {
  EXPECT_EQ(Instant().text(), "1970-01-01T00:00:00Z");
  EXPECT_EQ(date(951'782'400), "2000-02-29T00:00:00Z");
  EXPECT_EQ(date(951'868'799), "2000-02-29T23:59:59Z");
  EXPECT_EQ(date(951'868'800), "2000-03-01T00:00:00Z");
  EXPECT_EQ(date(1'000'000'000), "2001-09-09T01:46:40Z");
  EXPECT_EQ(date(1'769'903'999), "2026-01-31T23:59:59Z");
  EXPECT_EQ(date(4'107'542'400), "2100-03-01T00:00:00Z");
  EXPECT_EQ(date(4'107'542'399), "2100-02-28T23:59:59Z");
}

TEST(Instant, ShowsTheFractionOnlyWhenThereIsOne) {
  EXPECT_EQ(Instant::from_ns(1'769'903'999'123'456'789).text(), "2026-01-31T23:59:59.123456789Z");
  EXPECT_EQ(Instant::from_ns(1).text(), "1970-01-01T00:00:00.000000001Z");
}

TEST(Instant, CountsBackwardsBeforeTheEpoch) {
  EXPECT_EQ(Instant::from_ns(-1).text(), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(date(-86'400), "1969-12-31T00:00:00Z");
  EXPECT_EQ(date(-2'203'891'200), "1900-03-01T00:00:00Z");
  EXPECT_EQ(date(-2'203'891'201), "1900-02-28T23:59:59Z");
  EXPECT_EQ(Instant::from_ns(kMin).text(), "1677-09-21T00:12:43.145224192Z");
}

Instant parsed(std::string_view text) {
  const Result<Instant> read = Instant::parse(text);
  EXPECT_TRUE(read) << read.error().text();
  return read ? *read : Instant::max();
}

std::string refusal(std::string_view text) {
  const Result<Instant> read = Instant::parse(text);
  return read ? "accepted" : read.error().message;
}

TEST(Instant, IsReadFromItsText) {
  Rng rng = Rng::stream(2, "time");
  for (int i = 0; i < 20'000; ++i) {
    const auto t = Instant::from_ns(static_cast<std::int64_t>(rng.next_u64()) >> rng.below(64));
    ASSERT_EQ(parsed(t.text()), t) << t.text();
  }
  for (const Instant t : {Instant(), Instant::max(), Instant::from_ns(kMin)}) {
    EXPECT_EQ(parsed(t.text()), t) << t.text();
  }
}

TEST(Instant, IsReadWithAnOffsetAndAFractionOfUpToNineDigits) {
  EXPECT_EQ(parsed("2026-12-01T02:00:00+02:00"), parsed("2026-12-01T00:00:00Z"));
  EXPECT_EQ(parsed("2026-11-30T18:30:00-05:30"), parsed("2026-12-01T00:00:00Z"));
  EXPECT_EQ(parsed("1970-01-01T00:00:00.5Z").ns(), 500'000'000);
  EXPECT_EQ(parsed("1970-01-01T00:00:00.000000001Z").ns(), 1);
  EXPECT_EQ(parsed("1969-12-31T23:59:59.250Z").ns(), -750'000'000);
}

TEST(Instant, IsNotReadFromAnotherForm) {
  for (const char* text :
       {"", "Z", "2026-12-01", "2026-12-01T00:00:00", "2026-12-01 00:00:00Z",
        "2026-12-01T00:00:00z", "26-12-01T00:00:00Z", "2026-12-01T00:00:00.Z", "+026-12-01T00:00Z",
        "2026-12-01T00:00:00.1234567891Z", "2026-12-01T00:00:00+0200", "2026-12-01T00:00:00Z ",
        "2026-12-01T00:00:00ZZ", "2026-12-01T00:00:00+02:00Z", "-2026-12-01T00:00:00Z"}) {
    EXPECT_NE(refusal(text).find("is not a time; expected a time such as \"2026-12-01T00:00:00Z\""),
              std::string::npos)
        << text << ": " << refusal(text);
  }
}

TEST(Instant, IsNotReadFromADayOrAnHourThatIsNone) {
  EXPECT_EQ(parsed("2028-02-29T00:00:00Z").text(), "2028-02-29T00:00:00Z");
  for (const char* text : {"2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
                           "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
                           "2026-01-99T00:00:00Z"}) {
    EXPECT_NE(refusal(text).find("a day that no calendar has"), std::string::npos) << text;
  }
  for (const char* text : {"2026-12-01T24:00:00Z", "2026-12-01T00:60:00Z", "2026-12-01T00:00:60Z",
                           "2026-12-01T00:00:00+24:00", "2026-12-01T00:00:00-01:60"}) {
    EXPECT_NE(refusal(text).find("that no clock has"), std::string::npos) << text;
  }
}

TEST(Instant, IsNotReadFromBeyondItsRange) {
  for (const char* text : {"1677-09-21T00:12:43.145224191Z", "2262-04-11T23:47:16.854775808Z",
                           "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_NE(refusal(text).find("is before 1677-09-21 or after 2262-04-11"), std::string::npos)
        << text << ": " << refusal(text);
  }
}

}  // namespace
}  // namespace orrery

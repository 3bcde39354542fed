#include "report/plot/axis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"
#include "report/plot/nice_step.hpp"

namespace orrery {
namespace {

constexpr double kDay = 86400;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels_of(const Axis& axis, const ValueRange& range,
                                   const AxisFit& fit = {}) {
  std::vector<std::string> labels;
  const FittedAxis fitted(axis, range, fit);
  for (const AxisTick& tick : fitted.ticks()) labels.push_back(tick.label);
  return labels;
}

using Labels = std::vector<std::string>;

TEST(Axis, StepsOfElapsedTimeAreThoseOfAClockFromMillisecondsToCenturies) {
  const Axis axis{.title = "time", .unit = AxisUnit::kElapsed};
  EXPECT_EQ(labels_of(axis, {0, 0.004}),
            (Labels{"0 s", "0.001 s", "0.002 s", "0.003 s", "0.004 s"}));
  EXPECT_EQ(labels_of(axis, {0, 60}),
            (Labels{"0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"}));
  EXPECT_EQ(labels_of(axis, {0, 5400}),
            (Labels{"0 min", "15 min", "30 min", "45 min", "60 min", "75 min", "90 min"}));
  EXPECT_EQ(labels_of(axis, {0, 9 * 3600}), (Labels{"0 h", "2 h", "4 h", "6 h", "8 h"}));
  EXPECT_EQ(labels_of(axis, {0, 14 * kDay}), (Labels{"0 d", "7 d", "14 d"}));
  EXPECT_EQ(labels_of(axis, {0, 365 * kDay}), (Labels{"0 d", "90 d", "180 d", "270 d", "360 d"}));
  EXPECT_EQ(labels_of(axis, {0, 100 * 365 * kDay}),
            (Labels{"0 y", "20 y", "40 y", "60 y", "80 y", "100 y"}));
}

TEST(Axis, CalendarTicksStandAtMidnightsMondaysMonthsAndYears) {
  const Axis axis{.title = "time", .unit = AxisUnit::kCalendar};
  const double start = 1'506'816'000;  // 1 October 2017, a Sunday
  EXPECT_EQ(labels_of(axis, {start + 8 * 3600, start + 30 * 3600}),
            (Labels{"12:00", "18:00", "2 Oct", "06:00"}));
  EXPECT_EQ(
      labels_of(axis, {start, start + 30}),
      (Labels{"1 Oct", "00:00:05", "00:00:10", "00:00:15", "00:00:20", "00:00:25", "00:00:30"}));
  EXPECT_EQ(labels_of(axis, {start, start + 28 * kDay}),
            (Labels{"2 Oct", "9 Oct", "16 Oct", "23 Oct"}));
  EXPECT_EQ(labels_of(axis, {start, start + 365 * kDay}),
            (Labels{"Oct", "2018", "Apr", "Jul", "Oct"}));
  EXPECT_EQ(labels_of(axis, {start, start + 7 * 365 * kDay}),
            (Labels{"2018", "2020", "2022", "2024"}));
  EXPECT_EQ(FittedAxis(axis, {start, start + kDay}, {}).title(),
            "time (UTC), 1 Oct 2017 to 2 Oct 2017");
}

TEST(Axis, DatesBeforeTheEpochAreDates) {
  const Axis axis{.title = "time", .unit = AxisUnit::kCalendar};
  EXPECT_EQ(labels_of(axis, {-2 * kDay, 0}),
            (Labels{"30 Dec", "12:00", "31 Dec", "12:00", "1 Jan"}));
}

TEST(Axis, AmountsTakeThePrefixOfTheirRange) {
  const Axis power{.title = "power", .unit = AxisUnit::kPhysical, .symbol = "W"};
  const AxisFit rounded{.ends = AxisEnds::kRounded, .ticks_max = 5};
  EXPECT_EQ(labels_of(power, {1e6, 4.7e6}, rounded), (Labels{"0", "1", "2", "3", "4", "5"}));
  EXPECT_EQ(FittedAxis(power, {1e6, 4.7e6}, rounded).title(), "power (MW)");
  const Axis jobs{.title = "jobs"};
  EXPECT_EQ(labels_of(jobs, {0, 8000}, rounded), (Labels{"0", "2000", "4000", "6000", "8000"}));
  EXPECT_EQ(labels_of(jobs, {0, 70'000}, rounded), (Labels{"0", "20k", "40k", "60k", "80k"}));
  const Axis money{.title = "price", .unit = AxisUnit::kMoney};
  EXPECT_EQ(labels_of(money, {-40, 100}, rounded), (Labels{"-$50", "$0", "$50", "$100"}));
  EXPECT_EQ(labels_of({.title = "share", .unit = AxisUnit::kShare}, {0, 1}, rounded),
            (Labels{"0 %", "20 %", "40 %", "60 %", "80 %", "100 %"}));
}

TEST(Axis, LogarithmicDurationsAreMarkedWherePeopleKnowThem) {
  const Axis axis{.title = "wait", .unit = AxisUnit::kDuration, .scale = AxisScale::kLog};
  EXPECT_EQ(labels_of(axis, {1, 3e6}),
            (Labels{"1 s", "10 s", "1 min", "10 min", "1 h", "10 h", "1 d", "7 d", "30 d"}));
  const FittedAxis fitted(axis, {1, 10'000}, {});
  EXPECT_DOUBLE_EQ(fitted.part(100), 0.5);
  EXPECT_EQ(fitted.part(0), 0);
}

TEST(Axis, LogarithmicCountsAreMarkedAtPowersOfTen) {
  const Axis axis{.title = "jobs", .scale = AxisScale::kLog};
  EXPECT_EQ(labels_of(axis, {1, 2e6}), (Labels{"1", "100", "10k", "1M"}));
  EXPECT_EQ(labels_of(axis, {0.01, 10}), (Labels{"0.01", "0.1", "1", "10"}));
}

TEST(Axis, EveryRangeGetsAscendingDistinctTicksInsideIt) {
  Rng rng(11);
  constexpr AxisUnit kUnits[] = {AxisUnit::kCount,   AxisUnit::kPhysical, AxisUnit::kMoney,
                                 AxisUnit::kShare,   AxisUnit::kDuration, AxisUnit::kElapsed,
                                 AxisUnit::kCalendar};
  for (int i = 0; i < 3000; ++i) {
    const double span = math::pow(10, rng.uniform() * 12 - 2);
    const double from = span * rng.uniform() * 3;
    const Axis axis{.title = "x",
                    .unit = kUnits[i % 7],
                    .scale = i % 2 == 0 || i % 7 == 6 ? AxisScale::kLinear : AxisScale::kLog};
    const FittedAxis fitted(axis, {from, from + span}, {});
    SCOPED_TRACE(testing::Message() << "unit " << i % 7 << " from " << from << " span " << span);
    EXPECT_LE(fitted.ticks().size(), 14u);
    std::set<double> parts;
    for (const AxisTick& tick : fitted.ticks()) {
      EXPECT_GE(tick.value, fitted.range().min * (1 - 1e-9) - 1e-9);
      EXPECT_LE(tick.value, fitted.range().max * (1 + 1e-9));
      EXPECT_TRUE(parts.empty() || *parts.rbegin() < tick.value);
      parts.insert(tick.value);
      EXPECT_FALSE(tick.label.empty());
    }
  }
}

TEST(Axis, ARangeWithoutLengthIsWidened) {
  for (const double value : {0.0, 5.0, -3.0, 1e15}) {
    const FittedAxis fitted({.title = "x"}, {value, value}, {});
    EXPECT_LT(fitted.range().min, fitted.range().max);
    EXPECT_TRUE(std::isfinite(fitted.part(value)));
  }
  EXPECT_TRUE(std::isnan(FittedAxis({.title = "x"}, {0, 1}, {}).part(kNan)));
}

TEST(Axis, TheRangeOfValuesLeavesOutWhatIsNotFinite) {
  const std::vector<double> values = {kNan, 3, -1, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(range_of(values), (ValueRange{-1, 3}));
  EXPECT_FALSE(range_of(std::vector<double>{kNan}));
  EXPECT_EQ(joined(ValueRange{0, 1}, ValueRange{-2, 0}), (ValueRange{-2, 1}));
  EXPECT_EQ(joined(std::nullopt, ValueRange{-2, 0}), (ValueRange{-2, 0}));
}

TEST(Axis, NiceStepsAreOneTwoAndFive) {
  EXPECT_DOUBLE_EQ(nice_step(10, 10), 1);
  EXPECT_DOUBLE_EQ(nice_step(11, 10), 2);
  EXPECT_DOUBLE_EQ(nice_step(0.3, 10), 0.05);
  EXPECT_DOUBLE_EQ(nice_step(7e9, 10), 1e9);
}

TEST(Axis, ValuesReadWithTheirUnits) {
  EXPECT_EQ(value_text({.title = "", .symbol = "GPU-h"}, 12'345), "12.35k GPU-h");
  EXPECT_EQ(value_text({.title = "", .unit = AxisUnit::kPhysical, .symbol = "W"}, 1.25e6),
            "1.25 MW");
  EXPECT_EQ(value_text({.title = "", .unit = AxisUnit::kShare}, 0.4125), "41.25 %");
  EXPECT_EQ(value_text({.title = "", .unit = AxisUnit::kDuration}, 9000), "2.5 h");
  EXPECT_EQ(value_text({.title = ""}, kNan), "-");
}

}  // namespace
}  // namespace orrery

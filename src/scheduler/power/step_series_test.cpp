#include "scheduler/power/step_series.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

Instant second(std::int64_t s) { return Instant() + Duration::seconds(s); }

StepSeries<Watts> series(std::vector<StepSeries<Watts>::Step> steps) {
  Result<StepSeries<Watts>> made = StepSeries<Watts>::make(std::move(steps));
  EXPECT_TRUE(made) << (made ? "" : made.error().text());
  return *std::move(made);
}

StepSeries<Watts> sample() {
  return series({{second(10), Watts(4)}, {second(20), Watts(-2)}, {second(50), Watts(7)}});
}

TEST(StepSeries, HoldsEachValueFromItsInstantToTheNext) {
  const StepSeries<Watts> s = sample();
  EXPECT_EQ(s.at(second(0)), Watts(4));
  EXPECT_EQ(s.at(second(10)), Watts(4));
  EXPECT_EQ(s.at(second(20) - Duration::nanoseconds(1)), Watts(4));
  EXPECT_EQ(s.at(second(20)), Watts(-2));
  EXPECT_EQ(s.at(second(50)), Watts(7));
  EXPECT_EQ(s.at(Instant::max()), Watts(7));
}

TEST(StepSeries, MeansAreWeightedByTimeAndMayBeNegative) {
  const StepSeries<Watts> s = sample();
  EXPECT_DOUBLE_EQ(s.mean(second(10), second(20)).value(), 4);
  EXPECT_DOUBLE_EQ(s.mean(second(15), second(25)).value(), 1);
  EXPECT_DOUBLE_EQ(s.mean(second(18), second(38)).value(), (2 * 4 - 18 * 2) / 20.0);
  EXPECT_DOUBLE_EQ(s.mean(second(0), second(60)).value(), (20 * 4 - 30 * 2 + 10 * 7) / 60.0);
  EXPECT_DOUBLE_EQ(s.mean(second(0), second(5)).value(), 4);
  EXPECT_EQ(s.mean(second(30), second(30)), Watts(-2));
}

TEST(StepSeries, RefusesNothingDisorderAndWhatIsNoNumber) {
  const auto message = [](std::vector<StepSeries<Watts>::Step> steps) {
    Result<StepSeries<Watts>> made = StepSeries<Watts>::make(std::move(steps));
    return made ? std::string() : made.error().text();
  };
  EXPECT_NE(message({}).find("at least one"), std::string::npos);
  EXPECT_NE(message({{second(2), Watts(1)}, {second(2), Watts(2)}}).find("later time"),
            std::string::npos);
  EXPECT_NE(message({{second(2), Watts(std::numeric_limits<double>::quiet_NaN())}}).find("finite"),
            std::string::npos);
}

TEST(StepSeries, MeansOfRandomSeriesAreWhatSummingSecondBySecondGives) {
  Rng rng = Rng::stream(1, "step series");
  for (int round = 0; round < 200; ++round) {
    std::vector<StepSeries<Watts>::Step> steps;
    std::int64_t time = static_cast<std::int64_t>(rng.below(20));
    for (std::uint64_t n = rng.below(8) + 1; n > 0; --n) {
      steps.push_back({second(time), Watts(rng.uniform() * 20 - 10)});
      time += static_cast<std::int64_t>(rng.below(9)) + 1;
    }
    const StepSeries<Watts> s = series(steps);
    const auto from = static_cast<std::int64_t>(rng.below(60));
    const auto to = from + static_cast<std::int64_t>(rng.below(40)) + 1;
    double sum = 0;
    for (std::int64_t t = from; t < to; ++t) sum += s.at(second(t)).value();
    EXPECT_NEAR(s.mean(second(from), second(to)).value(), sum / static_cast<double>(to - from),
                1e-9);
  }
}

}  // namespace
}  // namespace orrery

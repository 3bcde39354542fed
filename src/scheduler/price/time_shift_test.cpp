// Jobs that wait for cleaner or cheaper electricity, and those that do not.
#include "scheduler/price/time_shift.hpp"

#include <gtest/gtest.h>

#include <string>

#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "scheduler/explain/explain.hpp"
#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

PlannerFacts shift_facts() {
  static const Catalog kCatalog = *Catalog::load(builtin_catalog(), {});
  static const Calibration kCalibration = *Calibration::load(builtin_calibration(), {});
  return {kCatalog, kCalibration};
}

using Carbon = StepSeries<GramsCo2PerJoule>;

GramsCo2PerJoule grams_a_kwh(double grams) { return GramsCo2PerJoule(grams / 3.6e6); }

/// A job of 8 devices and two hours on an idle fleet whose grid is dirty for six hours.
class TimeShift : public testing::Test {
 protected:
  TimeShift()
      : costs_(*FleetCosts::make(shift_facts(), cluster_.fleet().topology(), {})),
        carbon_(*Carbon::make({{cluster_.now(), grams_a_kwh(1000)},
                               {cluster_.now() + Duration::hours(6), grams_a_kwh(10)}})) {
    job_ = cluster_.job(8, Duration::hours(2));
    job_.kind = JobKind::kTrain;
    job_.goal = JobGoal::kEnergy;
    job_.deadline = cluster_.now() + Duration::hours(24);
  }

  [[nodiscard]] Situation situation() const {
    Situation s = cluster_.situation();
    s.costs = &costs_;
    s.carbon = &carbon_;
    return s;
  }
  /// When a pass wants to be woken for it; now: it starts.
  [[nodiscard]] Duration wait(const Policy& rules = *policy_named("hardware-aware")) {
    const JobId id = cluster_.submit(job_);
    const PassResult result =
        cluster_.scheduler().decide(situation(), rules, PassKind::kIncremental);
    cluster_.withdraw(id);
    if (result.waiting.empty()) return {};
    EXPECT_EQ(result.waiting.front().refusal.kind, RejectionKind::kLater);
    return result.wake - cluster_.now();
  }

  TestCluster cluster_;
  FleetCosts costs_;
  Carbon carbon_;
  JobRequest job_;
};

TEST_F(TimeShift, AJobOfTheGoalEnergyWaitsForCleanElectricityWithinItsSlack) {
  EXPECT_EQ(wait(), Duration::hours(6));
  job_.deadline = cluster_.now() + Duration::minutes(8 * 60 + 12);
  EXPECT_EQ(wait(), Duration::hours(6)) << "a tenth of its run is left";
  job_.deadline = cluster_.now() + Duration::hours(7);
  EXPECT_EQ(wait(), Duration::minutes(4 * 60 + 48)) << "the end of it is clean";
  job_.deadline = cluster_.now() + Duration::hours(6);
  EXPECT_EQ(wait(), Duration()) << "it would gain nothing";
}

TEST_F(TimeShift, WithoutADeadlineOrForTheGoalTimeAJobStartsAtOnce) {
  job_.goal = JobGoal::kTime;
  EXPECT_EQ(wait(), Duration());
  job_.goal = JobGoal::kEnergy;
  job_.deadline.reset();
  EXPECT_EQ(wait(), Duration());
}

TEST_F(TimeShift, WithoutPatienceNobodyWaits) {
  EXPECT_EQ(wait(*policy_named("hardware-aware:patience=0 s")), Duration());
}

// Six hours of its owner's time cost more than the carbon at 100 dollars a tonne, less at 10,000.
TEST_F(TimeShift, AJobOfTheGoalCostWaitsIfThatSavesMoreThanItsOwnersTimeCosts) {
  job_.goal = JobGoal::kCost;
  EXPECT_EQ(wait(), Duration());
  Policy green = *policy_named("hardware-aware");
  green.weights.carbon_tonne = 10'000;
  EXPECT_EQ(wait(green), Duration::hours(6));
}

TEST_F(TimeShift, NobodyWaitsForLessThanATwentieth) {
  carbon_ = *Carbon::make({{cluster_.now(), grams_a_kwh(1000)},
                           {cluster_.now() + Duration::hours(6), grams_a_kwh(960)}});
  EXPECT_EQ(wait(), Duration());
}

TEST_F(TimeShift, OfTwoCleanTimesTheCleanerIsTakenAndOfEqualsTheFirst) {
  carbon_ = *Carbon::make({{cluster_.now(), grams_a_kwh(1000)},
                           {cluster_.now() + Duration::hours(2), grams_a_kwh(300)},
                           {cluster_.now() + Duration::hours(5), grams_a_kwh(900)},
                           {cluster_.now() + Duration::hours(9), grams_a_kwh(100)}});
  EXPECT_EQ(wait(), Duration::hours(9));
  job_.deadline = cluster_.now() + Duration::hours(9);
  EXPECT_EQ(wait(), Duration::hours(2));
}

TEST_F(TimeShift, ExplainSaysUntilWhenAndWhatIsSaved) {
  const JobId id = cluster_.submit(job_);
  const ExplainNames names{.job = [](JobId) { return std::string("it"); }};
  const std::string text = explain(situation(), *policy_named("hardware-aware"), id, names).text();
  const std::string until = (cluster_.now() + Duration::hours(6)).text();
  EXPECT_NE(text.find("  why         by choice until " + until + ": electricity and carbon cost $"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  likely      in 6 h (half of the cases), in 6 h (nine of ten)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace orrery

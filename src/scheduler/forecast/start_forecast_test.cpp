#include "scheduler/forecast/start_forecast.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/numbers/distribution.hpp"
#include "scheduler/explain/explain.hpp"
#include "scheduler/place/cluster_test.hpp"
#include "scheduler/place/counted_fleet.hpp"
#include "scheduler/price/run_time.hpp"

namespace orrery {
namespace {

std::string one_node() {
  return one_hall(
      "    - racks:\n      - count: 1\n        cooling: in-row-or-dense-air\n        nodes: "
      "[{type: dgx-h100, count: 1}]\n");
}

std::optional<LikelyStart> forecast(const TestCluster& cluster, JobId job,
                                    const std::string& policy) {
  return forecast_start(cluster.situation(), *policy_named(policy), cluster.tree(),
                        {.job = job, .after = {}, .declined = {}, .declined_until = {}});
}

TEST(UncertainRun, QuantilesAreThoseOfTheTruncatedLogNormal) {
  EXPECT_NEAR(time_left({.expected = 100, .lasted = 0, .sigma = 0.5}, 0.5), 100, 1e-6);
  EXPECT_NEAR(time_left({.expected = 100, .lasted = 0, .sigma = 0.5}, 0.9),
              100 * std::exp(0.5 * 1.2815515655), 1e-4);
  // Half of what is beyond the median is beyond its third quartile.
  EXPECT_NEAR(time_left({.expected = 100, .lasted = 100, .sigma = 0.5}, 0.5),
              100 * std::exp(0.5 * 0.6744897502) - 100, 1e-4);
  EXPECT_EQ(time_left({.expected = 100, .lasted = 30, .sigma = 0}, 0.5), 70);
  EXPECT_EQ(time_left({.expected = 100, .lasted = 130, .sigma = 0}, 0.5), 0);
}

TEST(UncertainRun, AgreesWithDrawsThatLastedSoLong) {
  for (const double lasted : {20.0, 100.0, 250.0}) {
    Rng rng(7);
    std::vector<double> left;
    while (left.size() < 4000) {
      const double whole = 100 * Lognormal{0, 0.5}.sample(rng);
      if (whole > lasted) left.push_back(whole - lasted);
    }
    std::sort(left.begin(), left.end());
    for (const double part : {0.5, 0.9}) {
      const double drawn = left[static_cast<std::size_t>(part * 4000)];
      const double told = time_left({.expected = 100, .lasted = lasted, .sigma = 0.5}, part);
      EXPECT_NEAR(told / drawn, 1, 0.08) << lasted << ", " << part;
    }
  }
}

TEST(UncertainRun, GrowsWithWhatHasLastedFarBeyondTheEstimate) {
  double before = 0;
  for (const double lasted : {1e3, 1e5, 1e7, 1e9, 1e11}) {
    const double left = time_left({.expected = 1, .lasted = lasted, .sigma = 0.25}, 0.5);
    EXPECT_TRUE(std::isfinite(left));
    EXPECT_GT(left, before);
    before = left;
  }
}

TEST(CountedFleet, GivesBackWhatItTookAndKeepsGangsInsideTheirLevel) {
  TestCluster cluster;
  CountedFleet fleet(cluster.situation().fleet, cluster.tree());
  const FleetTypeId h100 = cluster.gang(1).type;
  EXPECT_EQ(fleet.free(h100), 128);
  std::vector<CountedPiece> pieces;
  GangRequest rack = cluster.gang(40);
  rack.required = TopologyLevel::kRack;
  EXPECT_FALSE(fleet.take(rack, pieces));
  EXPECT_TRUE(pieces.empty());
  rack.devices = 32;
  EXPECT_TRUE(fleet.take(rack, pieces));
  EXPECT_TRUE(fleet.take(cluster.gang(20), pieces));
  GangRequest shared = cluster.gang(1);
  shared.share = 250;
  EXPECT_TRUE(fleet.take(shared, pieces));
  EXPECT_EQ(fleet.free(h100), 128 - 32 - 20 - 1);
  EXPECT_FALSE(fleet.take(cluster.gang(96), pieces));
  for (const CountedPiece& piece : pieces) fleet.give_back(piece);
  EXPECT_EQ(fleet.free(h100), 128);
}

TEST(StartForecast, ThoseAheadCount) {
  for (const char* policy : {"fifo", "easy", "capacity", "hardware-aware:version=1"}) {
    TestCluster cluster(one_node());
    cluster.submit(cluster.job(8, Duration::hours(1)));
    cluster.pass(policy);
    for (int i = 0; i < 5; ++i) cluster.submit(cluster.job(8, Duration::hours(2)));
    const JobId last = cluster.submit(cluster.job(8));
    const auto when = forecast(cluster, last, policy);
    ASSERT_TRUE(when) << policy;
    EXPECT_GT(when->median, Duration::hours(10)) << policy;
    EXPECT_LT(when->median, Duration::hours(15)) << policy;
    EXPECT_GT(when->late, when->median) << policy;
  }
}

TEST(StartForecast, ARunPastItsEstimateEndsInNoSecond) {
  TestCluster cluster(one_node());
  cluster.submit(cluster.job(8, Duration::hours(1)));
  cluster.pass("easy");
  cluster.wait(Duration::hours(2));
  const auto when = forecast(cluster, cluster.submit(cluster.job(8)), "easy");
  ASSERT_TRUE(when);
  EXPECT_GT(when->median, Duration::minutes(20));
  EXPECT_GT(when->late, Duration::hours(1));
}

TEST(StartForecast, ARunWithoutAnExpectedEndLastsByItsEstimate) {
  TestCluster cluster(one_node());
  cluster.submit(cluster.job(8, Duration::hours(10)));
  cluster.pass("easy");
  cluster.running().front().expected_end = Instant::max();
  const auto when = forecast(cluster, cluster.submit(cluster.job(8)), "easy");
  ASSERT_TRUE(when);
  EXPECT_EQ(when->median, Duration::hours(10));
}

TEST(StartForecast, ALimitOfTheTenantHolds) {
  TestCluster cluster(small_h100(), "- {name: a, limit: {h100: 8}}\n- {name: b}\n");
  JobRequest wish = cluster.job(8, Duration::hours(3));
  wish.tenant = *cluster.tenants().find("a");
  for (int i = 0; i < 3; ++i) cluster.submit(wish);
  cluster.pass("capacity");
  const auto when = forecast(cluster, JobId(2), "capacity");
  ASSERT_TRUE(when);
  EXPECT_GT(when->median, Duration::hours(5));
}

TEST(StartForecast, AServiceThatNeverEndsLeavesItUnknown) {
  TestCluster cluster(one_node());
  JobRequest service = cluster.job(8);
  service.kind = JobKind::kServe;
  service.estimate.reset();
  cluster.submit(service);
  cluster.pass("easy");
  EXPECT_FALSE(forecast(cluster, cluster.submit(cluster.job(8)), "easy"));
}

TEST(StartForecast, WhoWaitsByChoiceIsToldWhenWhatItWaitsForIsFree) {
  TestCluster cluster(one_hall(
      "    - racks:\n      - count: 1\n        cooling: in-row-or-dense-air\n        nodes: "
      "[{type: dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n"));
  cluster.submit(cluster.job(8, Duration::hours(3)));
  cluster.pass("hardware-aware");
  JobRequest wish = cluster.job(8, Duration::hours(50));
  wish.roles[0].options.push_back({cluster.gang(8, "nvidia-a100-sxm4-80g"), 0.1, std::nullopt});
  const JobId id = cluster.submit(wish);
  const ExplainNames names{[](JobId job) { return fmt::format("job-{}", job.value()); }};
  const Explanation answer =
      explain(cluster.situation(), *policy_named("hardware-aware"), id, names);
  ASSERT_TRUE(answer.refusal);
  ASSERT_EQ(answer.refusal->kind, RejectionKind::kLater) << answer.text();
  ASSERT_TRUE(answer.when);
  EXPECT_EQ(answer.when->median, Duration::hours(3));
  EXPECT_NE(answer.why.find("by choice, for "), std::string::npos) << answer.text();
}

}  // namespace
}  // namespace orrery

// serving/canary_test.cpp - how often a good revision is rolled back, and how soon a bad one, over
// seeded runs that look after every request.
#include "serving/canary.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(Canary, EvidenceNeedsADifferenceBeyondTheMargin) {
  EXPECT_EQ(evidence_of_more({0, 0}, {100, 5}, 0), 0);
  EXPECT_EQ(evidence_of_more({100, 5}, {0, 0}, 0), 0);
  EXPECT_EQ(evidence_of_more({100, 5}, {100, 6}, 0), 0);
  EXPECT_EQ(evidence_of_more({100, 7}, {100, 6}, 0.02), 0);
  EXPECT_GT(evidence_of_more({100, 40}, {1000, 60}, 0.02), std::log(1e4));
  EXPECT_GT(evidence_of_more({10, 10}, {1000, 0}, 0.005), std::log(60));
}

TEST(Canary, EvidenceGrowsWithWhatIsSeenAndShrinksWithTheMargin) {
  double before = 0;
  for (const double count : {100.0, 200.0, 400.0, 800.0}) {
    const double evidence = evidence_of_more({count, 0.3 * count}, {10 * count, count}, 0.05);
    EXPECT_GT(evidence, before);
    EXPECT_LT(evidence_of_more({count, 0.3 * count}, {10 * count, count}, 0.1), evidence);
    before = evidence;
  }
}

/// A service and its canary in stages, judged after each request.
struct CanaryRun {
  CanaryOutcome outcome = CanaryOutcome::kNotWorse;
  double seen = 0;  ///< share of all requests that the canary got until then
};

struct Quality {
  double former = 0;
  double canary = 0;
};

CanaryRun run(std::uint64_t seed, Quality quality) {
  constexpr std::array<double, 3> kShares{0.01, 0.1, 0.5};
  constexpr int kStage = 6000;  // requests: 10 minutes of 10 a second
  Rng rng(seed);
  CanaryArm canary;
  CanaryArm former;
  for (const double share : kShares) {
    const std::uint64_t before = canary.requests;
    CanaryJudgement judged;
    for (int i = 0; i < kStage || judged.outcome == CanaryOutcome::kTooFew; ++i) {
      const bool tried = rng.uniform() < share;
      CanaryArm& arm = tried ? canary : former;
      ++arm.requests;
      arm.failed += rng.uniform() < 0.01 ? 1 : 0;
      arm.quality.count += 1;
      arm.quality.sum += rng.uniform() < (tried ? quality.canary : quality.former) ? 1 : 0;
      if (!tried) continue;
      judged = judge_canary(canary, former,
                            {.requests_min = before + 50, .latencies = false, .quality = true});
      const auto requests = static_cast<double>(canary.requests);
      const CanaryRun now{judged.outcome,
                          requests / (requests + static_cast<double>(former.requests))};
      if (judged.outcome == CanaryOutcome::kWorse) return now;
    }
  }
  return {};
}

TEST(Canary, AnEquallyGoodRevisionIsPromoted) {
  int rolled_back = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    rolled_back += run(seed, {0.8, 0.8}).outcome == CanaryOutcome::kWorse ? 1 : 0;
  }
  RecordProperty("rolled_back_of_100", rolled_back);
  EXPECT_LE(rolled_back, 5);
}

TEST(Canary, AFifthLessAccuracyIsSeenBeforeFivePercentOfTheRequests) {
  int in_time = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const CanaryRun bad = run(seed, {0.8, 0.64});
    in_time += bad.outcome == CanaryOutcome::kWorse && bad.seen < 0.05 ? 1 : 0;
  }
  RecordProperty("rolled_back_in_time_of_100", in_time);
  EXPECT_GE(in_time, 95);
}

TEST(Canary, FailuresAndSlowAnswersAreGates) {
  const CanaryArm good{.requests = 1000, .failed = 2, .slow_first = {1000, 8}};
  EXPECT_EQ(judge_canary({.requests = 49}, good, {}).outcome, CanaryOutcome::kTooFew);
  EXPECT_EQ(judge_canary({.requests = 50}, good, {}).outcome, CanaryOutcome::kNotWorse);
  const CanaryArm failing{.requests = 20, .failed = 10};
  const CanaryJudgement judged = judge_canary(failing, good, {});
  EXPECT_EQ(judged.outcome, CanaryOutcome::kWorse);
  EXPECT_EQ(judged.why, "50 % of 20 requests failed; of the former revision 0.2 % of 1000");
  EXPECT_EQ(judge_canary(failing, good, {.failures = false}).outcome, CanaryOutcome::kTooFew);
  const CanaryArm slow{.requests = 100, .slow_first = {100, 60}};
  EXPECT_EQ(judge_canary(slow, good, {}).outcome, CanaryOutcome::kWorse);
  EXPECT_EQ(judge_canary(slow, good, {.latencies = false}).outcome, CanaryOutcome::kNotWorse);
  EXPECT_EQ(judge_canary({.requests = 100}, good, {.quality = true}).outcome,
            CanaryOutcome::kTooFew);
}

}  // namespace
}  // namespace orrery

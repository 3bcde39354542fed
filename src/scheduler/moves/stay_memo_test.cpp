#include "scheduler/moves/stay_memo.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// Two running jobs, of which the first has nothing to gain for an hour.
class StayMemoTest : public testing::Test {
 protected:
  StayMemoTest() {
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      jobs_[i].id = JobId(i);
      jobs_[i].expected_end = Instant() + Duration::hours(8);
    }
    memo_.begin(situation(), policy_);
    memo_.remember(0, jobs_[0], Instant() + Duration::hours(1));
  }

  [[nodiscard]] Situation situation(Duration after = Duration()) const {
    Situation s = cluster_.situation();
    s.now = Instant() + after;
    s.running = jobs_;
    s.node_risk = risk_;
    s.failures_per_node_second = failures_;
    return s;
  }
  /// Whether the first job stays in a later pass.
  [[nodiscard]] bool stays(Duration after = Duration::minutes(1)) {
    const Situation s = situation(after);
    memo_.begin(s, policy_);
    return memo_.stays(0, s);
  }

  TestCluster cluster_;
  std::array<RunningJob, 2> jobs_;
  std::array<float, 16> risk_{};
  double failures_ = 1e-9;
  Policy policy_ = *policy_named("hardware-aware");
  StayMemo memo_;
};

TEST_F(StayMemoTest, AJobStaysUntilTheTimeThatWasRemembered) {
  EXPECT_TRUE(stays(Duration::minutes(59)));
  EXPECT_FALSE(stays(Duration::hours(1)));
  EXPECT_FALSE(memo_.stays(1, situation())) << "nothing is known of the other job";
}

TEST_F(StayMemoTest, AnEntryIsThatOfTheJobsPresentRun) {
  const auto changed = [&](const std::function<void(RunningJob&)>& change) {
    const RunningJob before = jobs_[0];
    change(jobs_[0]);
    const bool stays_now = stays();
    jobs_[0] = before;
    return !stays_now;
  };
  EXPECT_FALSE(changed([](RunningJob&) {}));
  EXPECT_TRUE(changed([](RunningJob& job) { job.id = JobId(7); }));
  EXPECT_TRUE(changed([](RunningJob& job) { job.since = Instant() + Duration::seconds(1); }));
  EXPECT_TRUE(changed([](RunningJob& job) { job.expected_end = Instant::max(); }));
  EXPECT_TRUE(stays());
}

TEST_F(StayMemoTest, AChangedWeightEndsAllEntries) {
  policy_.weights.failure += 1;
  EXPECT_FALSE(stays());
  policy_.weights.failure -= 1;
  EXPECT_FALSE(stays()) << "the entry is gone";
}

TEST_F(StayMemoTest, AChangedHorizonEndsAllEntries) {
  policy_.horizon = Seconds{60};
  EXPECT_FALSE(stays());
}

TEST_F(StayMemoTest, AChangedFailureRateEndsAllEntries) {
  failures_ *= 2;
  EXPECT_FALSE(stays());
}

TEST_F(StayMemoTest, AChangedRiskOfANodeEndsAllEntries) {
  risk_[5] = 2;
  EXPECT_FALSE(stays());
}

TEST_F(StayMemoTest, ALimitOfPowerEndsAllEntries) {
  const PowerTree tree(cluster_.fleet().topology());
  const PowerBudget budget(tree);
  Situation s = situation(Duration::minutes(1));
  s.power = &budget;
  memo_.begin(s, policy_);
  EXPECT_FALSE(memo_.stays(0, s));
}

}  // namespace
}  // namespace orrery

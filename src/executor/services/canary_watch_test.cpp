// executor/services/canary_watch_test.cpp - stages of a canary by what gateways report.
#include "executor/services/canary_watch.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

class CanaryWatchTest : public testing::Test {
 protected:
  CanaryWatchTest() {
    service_.id = JobId(3);
    service_.update = ServiceUpdate{.to = {.number = 2, .replica = nullptr, .texts = {}}};
    service_.update->terms = {.canary = {100, 5000}, .bake = Duration::minutes(10)};
    counts_.others = {.requests = 1000, .failed = 1};
  }
  std::optional<CanaryVerdict> judge(std::uint32_t ready = 1) {
    return watch_.judge({.service = service_, .counts = counts_, .slo = slo_, .ready = ready},
                        now_);
  }
  [[nodiscard]] std::string waits_for() const { return watch_.waits_for(JobId(3)); }

  Service service_;
  CanaryReport counts_{.revision = 2, .canary = {}, .others = {}};
  SloSpec slo_;
  Instant now_ = Instant() + Duration::hours(1);
  CanaryWatch watch_;
};

TEST_F(CanaryWatchTest, AStageEndsAfterItsTimeAndItsRequests) {
  EXPECT_FALSE(judge(0));
  EXPECT_EQ(waits_for(), "a replica of the new revision");
  now_ = now_ + Duration::minutes(20);
  EXPECT_FALSE(judge());
  EXPECT_EQ(waits_for(), "requests: it has answered 0 of 50");
  counts_.canary.requests = 60;
  now_ = now_ + Duration::minutes(9);
  EXPECT_FALSE(judge());
  EXPECT_EQ(waits_for().find("the end of its "), 0u) << waits_for();
  now_ = now_ + Duration::minutes(1);
  const std::optional<CanaryVerdict> verdict = judge();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->service, JobId(3));
  EXPECT_EQ(verdict->revision, 2u);
  EXPECT_EQ(verdict->stage, 0u);
  EXPECT_EQ(verdict->of, CanaryVerdict::Of::kPromote);
  service_.update->stage = 1;
  EXPECT_FALSE(judge());
  EXPECT_EQ(waits_for(), "requests: it has answered 60 of 110") << "each stage needs requests";
  counts_.canary.requests = 110;
  now_ = now_ + Duration::minutes(10);
  EXPECT_EQ(judge()->stage, 1u);
}

TEST_F(CanaryWatchTest, AGatewayThatStartsAnewDelaysAStageByNoMoreThanItsRequests) {
  service_.update->stage = 1;
  counts_.canary.requests = 5000;
  EXPECT_FALSE(judge());
  counts_.canary.requests = 10;
  now_ = now_ + Duration::minutes(10);
  EXPECT_FALSE(judge());
  EXPECT_EQ(waits_for(), "requests: it has answered 10 of 60");
  counts_.canary.requests = 60;
  EXPECT_TRUE(judge());
}

TEST_F(CanaryWatchTest, WhatIsWorseIsGivenUpAtOnce) {
  counts_.canary = {.requests = 20, .failed = 10};
  const std::optional<CanaryVerdict> verdict = judge();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->of, CanaryVerdict::Of::kGiveUp);
  EXPECT_EQ(
      verdict->why,
      "the canary is worse: 50 % of 20 requests failed; of the former revision 0.1 % of 1000");
  service_.update->terms.gates.failures = false;
  EXPECT_FALSE(judge());
}

TEST_F(CanaryWatchTest, LatenciesCountByTheTargetsOfTheService) {
  counts_.canary.requests = 100;
  for (int i = 0; i < 100; ++i) {
    counts_.canary.tpot.add(Duration::milliseconds(90));
    counts_.others.tpot.add(Duration::milliseconds(20));
  }
  EXPECT_FALSE(judge()) << "there is no target";
  slo_.tpot.p99 = Seconds(0.05);
  EXPECT_EQ(judge()->of, CanaryVerdict::Of::kGiveUp);
  slo_.tpot.p99 = Seconds(0.2);
  EXPECT_FALSE(judge());
}

TEST_F(CanaryWatchTest, AnotherRevisionBeginsAnew) {
  counts_.canary.requests = 60;
  EXPECT_FALSE(judge());
  now_ = now_ + Duration::minutes(10);
  service_.update->to.number = 3;
  EXPECT_FALSE(judge());
  EXPECT_EQ(waits_for(), "requests: it has answered 60 of 110");
  watch_.forget(JobId(3));
  EXPECT_EQ(waits_for(), "");
}

}  // namespace
}  // namespace orrery

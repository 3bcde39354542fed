// executor/services/scale_watch_test.cpp - when services are scaled, by what gateways report each
// second.
#include "executor/services/scale_watch.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr JobId kService(3);

/// A service whose replicas serve 100 requests a second each, of ten tokens of prompt and ten of
/// answer.
class ScaleWatchTest : public testing::Test {
 protected:
  ScaleWatchTest() {
    service_.id = kService;
    measured_.window_requests = 100;
    measured_.window_prompt_tokens = measured_.window_output_tokens = 1000;
    ready(1);
  }
  void ready(std::size_t replicas) {
    // A step of 8 tokens takes 4 ms: 0.5 ms of the replica for each token, and 0.3 for one of a
    // prompt; with 0.8 of its time and 0.1 of doubt that is 90 requests.
    const ReplicaPace pace{.prefill_tokens_s = 3333, .step_s = 0.002, .step_full_s = 0.004};
    ready_.assign(replicas, {ReplicaPhase::kReady, "10.0.0.1:80", 7, 8, pace});
  }
  /// Reports of so many seconds with that load; returns the orders.
  std::vector<ScaleOrder> run(int seconds, std::int64_t requests_s) {
    std::vector<ScaleOrder> orders;
    for (int i = 0; i < seconds; ++i) {
      now_ = now_ + Duration::seconds(1);
      flow_.requests += requests_s;
      flow_.answered += static_cast<std::uint64_t>(requests_s);
      flow_.late += late_s_;
      if (auto order = watch_.judge(seen(), now_)) {
        scaling_ = {now_, wanted_, order->replicas, order->why};
        wanted_ = order->replicas;
        orders.push_back(*std::move(order));
      }
    }
    return orders;
  }
  [[nodiscard]] SeenScaling seen() const {
    return {.service = service_,
            .terms = terms_,
            .slo = slo_,
            .last = scaling_.why.empty() ? nullptr : &scaling_,
            .wanted = wanted_,
            .ready = ready_,
            .flow = flow_,
            .measured = measured_,
            .running = running_,
            .cold_start = Duration::seconds(20)};
  }

  Service service_;
  ScalingSpec terms_{.min = 0, .max = 6};
  SloSpec slo_;
  ServiceScaling scaling_;
  std::uint32_t wanted_ = 1;
  std::vector<ReplicaReport> ready_;
  ServiceFlow flow_;
  ServiceReport measured_;
  std::uint32_t running_ = 0;
  std::uint64_t late_s_ = 0;  ///< answers of a second that miss a target
  Instant now_ = Instant() + Duration::hours(1);
  ScaleWatch watch_;
};

TEST_F(ScaleWatchTest, ThreeTimesTheLoadIsAnsweredWithinTenSeconds) {
  EXPECT_TRUE(run(120, 50).empty());
  const std::vector<ScaleOrder> orders = run(10, 150);
  ASSERT_FALSE(orders.empty());
  EXPECT_EQ(orders.front().service, kService);
  EXPECT_GE(orders.back().replicas, 2u);
  EXPECT_NE(orders.back().why.find("tokens/s are expected in 25 s"), std::string::npos)
      << orders.back().why;
  EXPECT_EQ(watch_.why(kService), orders.back().why);
  EXPECT_LE(run(60, 150).size(), 1u) << "the load stays";
}

TEST_F(ScaleWatchTest, ReplicasLeaveOneByOneAndTheLastRests) {
  wanted_ = 4;
  ready(4);
  std::vector<ScaleOrder> orders = run(600, 50);
  ASSERT_EQ(orders.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(orders[i].replicas, 3 - i);
  EXPECT_TRUE(run(595, 0).empty());
  orders = run(15, 0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].replicas, 0u);
  EXPECT_EQ(orders[0].why, "there was no request for 10 min");
}

TEST_F(ScaleWatchTest, ARequestWakesAReplicaAtOnce) {
  wanted_ = 0;
  ready_.clear();
  EXPECT_TRUE(run(100, 0).empty());
  measured_.waiting = 1;
  const std::vector<ScaleOrder> orders = run(1, 1);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].replicas, 1u);
  EXPECT_EQ(orders[0].why, "there is no replica for the requests that wait (1)");
}

TEST_F(ScaleWatchTest, RequestsThatReplicasStillHaveKeepThemAwake) {
  running_ = 1;
  EXPECT_TRUE(run(1200, 0).empty());
}

TEST_F(ScaleWatchTest, FullReplicasThatServeLessThanTheirPaceSaysCountForLess) {
  EXPECT_TRUE(run(60, 60).empty()) << "one replica would do";
  // They answer a third of it, so requests wait.
  measured_.waiting = 8;
  std::vector<ScaleOrder> orders;
  for (int i = 0; i < 60; ++i) {
    flow_.prompt_tokens += 200;
    flow_.output_tokens += 200;
    for (ScaleOrder& each : run(1, 60)) orders.push_back(std::move(each));
  }
  ASSERT_FALSE(orders.empty());
  EXPECT_GE(orders.back().replicas, 2u);
}

TEST_F(ScaleWatchTest, RequestsThatMissATargetCallForAnotherReplica) {
  slo_.ttft.p99 = Seconds(1);
  wanted_ = 2;
  ready(2);
  for (const ScaleOrder& each : run(120, 120)) EXPECT_LE(each.replicas, 2u) << each.why;
  late_s_ = 20;
  const std::vector<ScaleOrder> orders = run(600, 120);
  ASSERT_FALSE(orders.empty()) << watch_.why(kService);
  EXPECT_GE(orders.back().replicas, 3u);
}

TEST_F(ScaleWatchTest, WhileAnotherRevisionComesNothingIsOrdered) {
  service_.update = ServiceUpdate{.to = {.number = 2, .replica = nullptr, .texts = {}}};
  EXPECT_TRUE(run(60, 500).empty());
  EXPECT_EQ(watch_.why(kService), "it is not scaled before its update has ended");
  service_.update.reset();
  EXPECT_FALSE(run(6, 500).empty());
}

TEST_F(ScaleWatchTest, AnOrderThatDidNotSucceedIsNotRepeatedAtOnce) {
  scaling_ = {now_, 1, 2, "load"};
  service_.outcome = "job 5 failed";
  EXPECT_TRUE(run(59, 300).empty());
  EXPECT_NE(watch_.why(kService).find("in 5 s: job 5 failed"), std::string::npos)
      << watch_.why(kService);
  EXPECT_EQ(run(6, 300).size(), 1u);
}

TEST_F(ScaleWatchTest, OrdersThatFailAgainAndAgainComeLessAndLessOften) {
  service_.outcome = "no machine is free";
  scaling_ = {now_, 1, 2, "load"};
  std::vector<std::int64_t> minutes;
  for (int i = 0; i < 6; ++i) {
    const Instant failed = now_;
    wanted_ = 1;
    while (run(1, 300).empty()) ASSERT_LT(now_ - failed, Duration::hours(2));
    minutes.push_back((now_ - failed).count_ns() / Duration::minutes(1).count_ns());
  }
  EXPECT_EQ(minutes, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32}));
  wanted_ = 1;
  service_.outcome.clear();
  EXPECT_EQ(run(10, 300).size(), 1u) << "it succeeded at last";
  service_.outcome = "no machine is free";
  wanted_ = 1;
  EXPECT_EQ(run(70, 300).size(), 1u) << "a failure after a success is a first one";
}

TEST_F(ScaleWatchTest, WithoutAPaceTheNumberStays) {
  for (ReplicaReport& each : ready_) each.pace = {};
  EXPECT_TRUE(run(60, 1000).empty());
  EXPECT_EQ(watch_.why(kService), "no replica has measured its pace yet");
}

}  // namespace
}  // namespace orrery

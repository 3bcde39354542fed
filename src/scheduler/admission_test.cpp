// Tests of whether deadlines and budgets can be kept, and with which placement.
#include "scheduler/admission.hpp"

#include <gtest/gtest.h>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

const std::string kPolicy = "hardware-aware:estimate_sigma=0";

/// The admission of a job that is submitted now. Devices cost a dollar an hour here.
Admission judged(TestCluster& cluster, JobRequest request) {
  const JobId job = cluster.submit(std::move(request));
  const Policy policy = *policy_named(kPolicy);
  const Fleet empty(cluster.fleet().topology());
  const Situation s = cluster.situation();
  Admission admission = judge_admission({s, policy, cluster.tree(), empty.view(), job});
  cluster.withdraw(job);
  return admission;
}

JobRequest bounded(const TestCluster& cluster, Duration from_now, double dollars) {
  JobRequest request = cluster.job(64, Duration::hours(10));
  if (from_now > Duration()) request.deadline = cluster.now() + from_now;
  if (dollars > 0) request.budget = Dollars(dollars);
  return request;
}

TEST(Admission, AJobWithoutBoundsIsToldNothing) {
  TestCluster cluster;
  const Admission admission = judged(cluster, bounded(cluster, Duration(), 0));
  EXPECT_EQ(admission.refusal + admission.note, "");
}

TEST(Admission, NothingIsSaidWhereNobodyKnowsTheLength) {
  TestCluster cluster;
  JobRequest request = bounded(cluster, Duration::hours(1), 1);
  request.estimate.reset();
  const Admission admission = judged(cluster, request);
  EXPECT_EQ(admission.refusal + admission.note, "");
}

TEST(Admission, ABudgetThatNoPlacementKeepsIsRefusedWithTheOneThatWouldDo) {
  TestCluster cluster;
  EXPECT_EQ(
      judged(cluster, bounded(cluster, Duration(), 600)).refusal,
      "budget: its cheapest placement, 64 nvidia-h100-sxm5-80g, costs $640.00; a budget of $640 "
      "would do");
  EXPECT_EQ(judged(cluster, bounded(cluster, Duration(), 640)).refusal, "");
}

TEST(Admission, ADeadlineThatNoPlacementMeetsIsRefusedWithTheOneThatWouldDo) {
  TestCluster cluster;
  EXPECT_EQ(judged(cluster, bounded(cluster, Duration::hours(9), 0)).refusal,
            "deadline: at its quickest, on 64 nvidia-h100-sxm5-80g, it takes 10 h; a deadline of " +
                (cluster.now() + Duration::hours(10)).text() + " would do");
  EXPECT_EQ(judged(cluster, bounded(cluster, Duration::hours(10), 0)).refusal, "");
}

// On 64 devices the job takes 10 h and costs $640; on 128 it takes 6.25 h and costs $800.
TEST(Admission, WhereOnlyADearPlacementIsInTimeItsBudgetIsNamed) {
  TestCluster cluster;
  JobRequest request = bounded(cluster, Duration::hours(7), 700);
  GangOption quick = request.roles[0].options[0];
  quick.gang = cluster.gang(128);
  quick.speed = 1.6;
  request.roles[0].options.push_back(quick);
  EXPECT_EQ(judged(cluster, request).refusal,
            "budget: in time for its deadline it costs $800.00 at least, on 128 "
            "nvidia-h100-sxm5-80g; a budget of $800 would do, or a deadline of " +
                (cluster.now() + Duration::hours(10)).text());
  request.budget = Dollars(900);
  EXPECT_EQ(judged(cluster, request).refusal, "");
}

TEST(Admission, WhatIsLikelyIsSaidAtOnce) {
  TestCluster cluster;
  EXPECT_EQ(
      judged(cluster, bounded(cluster, Duration::hours(12), 900)).note,
      "on 64 nvidia-h100-sxm5-80g it takes 10 h and costs $640.00 of its budget of $900.00; it "
      "starts at the next decision, 2 h earlier than it must");
  cluster.submit(cluster.job(128, Duration::hours(5)));
  cluster.pass(kPolicy);
  EXPECT_EQ(
      judged(cluster, bounded(cluster, Duration::hours(12), 0)).note,
      "on 64 nvidia-h100-sxm5-80g it takes 10 h and costs $640.00; it is likely to start in 5 h "
      "and miss its deadline by 3 h; a deadline of " +
          (cluster.now() + Duration::hours(15)).text() + " would do");
}

TEST(Admission, AmountsAreRoundedUpToTwoDigits) {
  EXPECT_DOUBLE_EQ(round_up(Dollars(283.1)).value(), 290);
  EXPECT_DOUBLE_EQ(round_up(Dollars(290)).value(), 290);
  EXPECT_DOUBLE_EQ(round_up(Dollars(12345)).value(), 13000);
  EXPECT_NEAR(round_up(Dollars(0.123)).value(), 0.13, 1e-12);
}

}  // namespace
}  // namespace orrery

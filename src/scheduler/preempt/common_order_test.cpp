#include "scheduler/preempt/common_order.hpp"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

const std::string kReplans = "fifo:preemption=anew,min_run=0 s";

/// One node of eight devices, of an elastic job that may have two.
JobRequest one_or_two_nodes(const TestCluster& cluster) {
  JobRequest request = cluster.job(8);
  request.preemptible = true;
  RoleRequest& role = request.roles.front();
  role.devices_max = 16;
  role.options.push_back({cluster.gang(16), 1.9, std::nullopt});
  return request;
}

TEST(CommonOrder, AJobThatGetsAnotherPlaceLeavesFirstAndStartsThereLater) {
  TestCluster cluster;
  const JobId first = cluster.submit(cluster.job(8));
  const JobId moves = cluster.submit(cluster.job(8));
  cluster.pass(kReplans);
  const NodeId place = cluster.find(first)->gangs.front().allocation.ranks.front().node;
  ASSERT_NE(cluster.find(moves)->gangs.front().allocation.ranks.front().node, place);
  cluster.finish(first);
  const PassResult leaves = cluster.pass(kReplans);
  ASSERT_EQ(leaves.decisions.size(), 1u);
  EXPECT_EQ(std::get<PreemptJob>(leaves.decisions.front()).job, moves);
  EXPECT_FALSE(cluster.runs(moves));
  cluster.pass(kReplans);
  ASSERT_TRUE(cluster.runs(moves));
  EXPECT_EQ(cluster.find(moves)->gangs.front().allocation.ranks.front().node, place);
}

// The fleet of the pass holds the new plan by then, in which running jobs have other places.
TEST(CommonOrder, AFullPassImprovesNothingAfterAllJobsWerePlannedAnew) {
  TestCluster cluster;
  const JobId first = cluster.submit(cluster.job(8));
  const JobId elastic = cluster.submit(one_or_two_nodes(cluster));
  cluster.pass(kReplans);
  ASSERT_TRUE(cluster.runs(elastic));
  cluster.finish(first);
  const PassResult full = cluster.pass(kReplans, PassKind::kFull);
  ASSERT_EQ(full.decisions.size(), 1u);
  EXPECT_EQ(std::get<PreemptJob>(full.decisions.front()).job, elastic);
}

}  // namespace
}  // namespace orrery

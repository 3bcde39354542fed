// For which jobs `blocked: reserves-if-needed` keeps a slot.
#include <gtest/gtest.h>

#include <string>

#include "scheduler/cluster_test.hpp"

namespace orrery {
namespace {

const std::string kDefault = "hardware-aware";
constexpr std::uint32_t kAll = 128;  ///< devices of the cluster

JobRequest resuming(const TestCluster& cluster, std::uint32_t devices, Duration estimate) {
  JobRequest request = cluster.job(devices, estimate);
  request.kind = JobKind::kTrain;
  request.preemptible = true;
  request.checkpoint_interval = Duration::minutes(30);
  return request;
}

/// Fills a cluster with jobs of one node; `last` is one more.
void fill(TestCluster& cluster, const JobRequest& last) {
  for (std::uint32_t devices = 8; devices < kAll; devices += 8) {
    cluster.submit(resuming(cluster, 8, Duration::hours(1)));
  }
  cluster.submit(last);
  cluster.pass(kDefault);
  ASSERT_EQ(cluster.running().size(), kAll / 8);
}

std::size_t slots(TestCluster& cluster, const std::string& policy = kDefault) {
  return cluster.pass(policy, PassKind::kFull).reservations.size();
}

TEST(KeptSlots, AJobKeepsNoneWhereItsTurnComesByTheOrder) {
  TestCluster cluster;
  fill(cluster, resuming(cluster, 8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(100)));
  EXPECT_EQ(slots(cluster), 0u);
  EXPECT_EQ(slots(cluster, "hardware-aware:version=2"), 1u);
  EXPECT_EQ(slots(cluster, "hardware-aware:blocked=reserves"), 1u);
  EXPECT_EQ(slots(cluster, "hardware-aware:yield_ratio=0"), 1u) << "nobody overtakes";
}

TEST(KeptSlots, AJobThatMayNotBeOvertakenIsInTheWayOfAWholeGang) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(100)));
  EXPECT_EQ(slots(cluster), 1u);
  TestCluster without_checkpoints;
  JobRequest last = resuming(without_checkpoints, 8, Duration::hours(1));
  last.checkpoint_interval = Duration::max();
  fill(without_checkpoints, last);
  without_checkpoints.submit(resuming(without_checkpoints, kAll, Duration::hours(100)));
  EXPECT_EQ(slots(without_checkpoints), 1u);
}

TEST(KeptSlots, ASmallerGangNeedsOnlyTheOthers) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll - 8, Duration::hours(100)));
  EXPECT_EQ(slots(cluster), 0u);
}

TEST(KeptSlots, ARoleOfSeveralGangsIsAskedForAsAWhole) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  JobRequest gangs = resuming(cluster, 32, Duration::hours(100));
  gangs.roles[0].gangs = 4;
  cluster.submit(gangs);
  EXPECT_EQ(slots(cluster), 1u);
  gangs.roles[0].gangs = 3;
  TestCluster other;
  fill(other, other.job(8, Duration::hours(1)));
  other.submit(gangs);
  EXPECT_EQ(slots(other), 0u);
}

TEST(KeptSlots, AnotherTenantsOwnDevicesAreNotToBeWonByTheOrder) {
  const std::string tenants = "- {name: a, guarantee: {h100: 128}}\n- {name: b}\n";
  TestCluster cluster(small_h100(), tenants);
  JobRequest theirs = resuming(cluster, kAll, Duration::hours(1));
  theirs.tenant = *cluster.tenants().find("a");
  cluster.submit(theirs);
  cluster.pass(kDefault);
  JobRequest mine = resuming(cluster, kAll, Duration::hours(100));
  mine.tenant = *cluster.tenants().find("b");
  cluster.submit(mine);
  EXPECT_EQ(slots(cluster), 1u);
}

TEST(KeptSlots, AJobThatHasWaitedForTheAgeingKeepsOneInAnyCase) {
  TestCluster cluster;
  fill(cluster, resuming(cluster, 8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(100)));
  const std::string policy = "hardware-aware:ageing=2 h";
  EXPECT_EQ(slots(cluster, policy), 0u);
  cluster.wait(Duration::minutes(119));
  EXPECT_EQ(slots(cluster, policy), 0u);
  cluster.wait(Duration::minutes(1));
  EXPECT_EQ(slots(cluster, policy), 1u);
}

}  // namespace
}  // namespace orrery

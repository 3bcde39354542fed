#include "scheduler/scheduler.hpp"

#include "scheduler/cluster_test.hpp"

namespace orrery {
namespace {

TEST(Scheduler, StartsAJobOnOneNodeAndKeepsItWhole) {
  TestCluster cluster;
  const JobId id = cluster.submit(cluster.job(8));
  cluster.pass("fifo");
  const RunningJob* job = cluster.find(id);
  ASSERT_NE(job, nullptr);
  ASSERT_EQ(job->gangs.size(), 1u);
  ASSERT_EQ(job->gangs[0].allocation.ranks.size(), 1u);
  EXPECT_EQ(job->gangs[0].allocation.ranks[0].devices, 0xffu);
}

TEST(Scheduler, FifoStopsAtTheHeadOfTheQueueOrSkipsIt) {
  for (const bool blocking : {true, false}) {
    TestCluster cluster;
    cluster.submit(cluster.job(120));
    const JobId large = cluster.submit(cluster.job(16));
    const JobId small = cluster.submit(cluster.job(4));
    cluster.pass(blocking ? "fifo:blocking=true" : "fifo:blocking=false");
    EXPECT_FALSE(cluster.runs(large));
    EXPECT_EQ(cluster.runs(small), !blocking);
  }
}

TEST(Scheduler, SrtfPushesOutTheLongestAndStartsInItsPlace) {
  TestCluster cluster;
  const JobId longest = cluster.submit(cluster.job(128, Duration::hours(9)));
  cluster.pass("srtf");
  cluster.wait(Duration::minutes(5));
  const JobId shorter = cluster.submit(cluster.job(64, Duration::hours(1)));
  cluster.pass("srtf");
  EXPECT_FALSE(cluster.runs(longest));
  EXPECT_FALSE(cluster.runs(shorter));
  cluster.pass("srtf");
  EXPECT_TRUE(cluster.runs(shorter));
  EXPECT_FALSE(cluster.runs(longest));
}

TEST(Scheduler, CapacityReclaimsAGuaranteeFromWhoeverBorrowedIt) {
  TestCluster cluster(small_h100(),
                      "- {name: a, guarantee: {h100: 64}}\n- {name: b, guarantee: {h100: 64}}\n");
  JobRequest borrower = cluster.job(32);
  borrower.tenant = *cluster.tenants().find("a");
  borrower.preemptible = true;
  std::vector<JobId> borrowers;
  for (int i = 0; i < 4; ++i) borrowers.push_back(cluster.submit(borrower));
  cluster.pass("capacity");
  for (const JobId id : borrowers) EXPECT_TRUE(cluster.runs(id));
  cluster.wait(Duration::hours(1));
  JobRequest owner = cluster.job(64);
  owner.tenant = *cluster.tenants().find("b");
  const JobId claimed = cluster.submit(owner);
  for (int i = 0; i < 5; ++i) cluster.pass("capacity");
  EXPECT_TRUE(cluster.runs(claimed));
  EXPECT_EQ(cluster.running().size(), 3u);
}

TEST(Scheduler, HardwareAwareTakesWhatCostsLeastForTheJob) {
  TestCluster cluster(
      one_hall("    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
               "dgx-h100, count: 2}, "
               "{type: dgx-a100-80g, count: 2}]\n"));
  JobRequest request = cluster.job(8);
  GangOption slower{cluster.gang(8, "a100-80g"), 0.4, std::nullopt};
  request.roles[0].options.push_back(slower);
  const JobId first = cluster.submit(request);
  const PassResult result = cluster.pass("hardware-aware");
  for (const StillWaits& w : result.waiting) {
    ADD_FAILURE() << name_of(w.refusal.kind) << " " << static_cast<int>(w.refusal.level) << " "
                  << w.refusal.missing;
  }
  ASSERT_TRUE(cluster.runs(first));
  EXPECT_EQ(cluster.find(first)->gangs[0].option, 0u);
}

}  // namespace
}  // namespace orrery

#include "scheduler/scheduler.hpp"

#include <fmt/format.h>

#include "base/numbers/rng.hpp"
#include "scheduler/place/cluster_test.hpp"
#include "scheduler/plans/class_table.hpp"

namespace orrery {
namespace {

/// Decisions and refusals as text.
std::string shown(const PassResult& result) {
  std::string text;
  for (const Decision& decision : result.decisions) {
    if (const auto* start = std::get_if<StartJob>(&decision)) {
      text += fmt::format("start {}", start->job.value());
      for (const PlacedGang& gang : start->gangs) {
        for (const NodeDevices& at : gang.allocation.ranks) {
          text += fmt::format(" {}:{:x}", at.node.value(), at.devices);
        }
      }
    } else if (const auto* preempt = std::get_if<PreemptJob>(&decision)) {
      text += fmt::format("preempt {}", preempt->job.value());
    } else if (const auto* resize = std::get_if<ResizeJob>(&decision)) {
      text += fmt::format("resize {}", resize->job.value());
    }
    text += "\n";
  }
  for (const StillWaits& waits : result.waiting) {
    text += fmt::format("{} waits: {}\n", waits.job.value(), name_of(waits.refusal.kind));
  }
  return text;
}

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

TEST(Scheduler, RoomThatIsNotThereIsLookedForOnceForAllWhoArePlacedAlike) {
  for (const char* policy : {"sjf", "capacity:preemption=none", "hardware-aware:preemption=none"}) {
    TestCluster cluster;
    ClassTable classes;
    cluster.submit(cluster.job(120));
    cluster.pass(policy);
    for (int hours = 1; hours <= 20; ++hours) {
      JobRequest job = cluster.job(16, Duration::hours(hours));
      job.class_id = classes.of(job);
      cluster.submit(job);
    }
    JobRequest fits = cluster.job(8);
    fits.class_id = classes.of(fits);
    const JobId small = cluster.submit(fits);
    const PassResult result = cluster.pass(policy);
    EXPECT_TRUE(cluster.runs(small)) << policy;
    EXPECT_EQ(result.waiting.size(), 20u) << policy;
    EXPECT_EQ(result.placements, 2u) << policy;
  }
}

TEST(Scheduler, SrtfPushesOutTheLongestAndStartsInItsPlace) {
  TestCluster cluster;
  const JobId longest = cluster.submit(cluster.job(128, Duration::hours(9)));
  cluster.pass("srtf");
  cluster.wait(Duration::minutes(5));
  const JobId shorter = cluster.submit(cluster.job(64, Duration::hours(1)));
  cluster.pass("srtf");
  EXPECT_TRUE(cluster.runs(longest)) << "before its round of 6 min has ended";
  cluster.wait(Duration::minutes(1));
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
  borrowers.reserve(4);
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
  GangOption slower{cluster.gang(8, "nvidia-a100-sxm4-80g"), 0.4, std::nullopt};
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

// The second would run for 300 hours on the A100, and for 30 on the H100 that the first leaves. It
// waits no longer than its patience of 6 hours.
TEST(Scheduler, AJobWaitsForWhatAnotherOfItsPassWillLeave) {
  TestCluster cluster(one_hall(
      "    - racks:\n      - count: 1\n        cooling: in-row-or-dense-air\n        nodes: "
      "[{type: dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n"));
  const auto on_either = [&](Duration estimate) {
    JobRequest wish = cluster.job(8, estimate);
    wish.roles[0].options.push_back({cluster.gang(8, "nvidia-a100-sxm4-80g"), 0.1, std::nullopt});
    return cluster.submit(wish);
  };
  for (const Duration first_runs : {Duration::minutes(30), Duration::hours(20)}) {
    const JobId first = cluster.submit(cluster.job(8, first_runs));
    const JobId second = on_either(Duration::hours(30));
    cluster.pass("hardware-aware");
    ASSERT_TRUE(cluster.runs(first));
    EXPECT_EQ(cluster.runs(second), first_runs > Duration::hours(6));
    cluster.finish(first);
    if (!cluster.runs(second)) cluster.pass("hardware-aware");
    ASSERT_TRUE(cluster.runs(second));
    cluster.finish(second);
  }
}

// A job on the slower type moves to the faster one once no job waits for that, and not before.
TEST(Scheduler, HardwareAwareMovesAJobToATypeThatNobodyWaitsFor) {
  TestCluster cluster(
      one_hall("    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
               "dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n"));
  const JobId holder = cluster.submit(cluster.job(8));
  cluster.pass("hardware-aware");
  JobRequest either = cluster.job(8, Duration::hours(10));
  either.preemptible = true;
  either.roles[0].options.push_back({cluster.gang(8, "nvidia-a100-sxm4-80g"), 0.4, std::nullopt});
  const JobId mover = cluster.submit(either);
  cluster.pass("hardware-aware");
  ASSERT_TRUE(cluster.runs(mover)) << "it does not wait";
  EXPECT_EQ(cluster.find(mover)->gangs[0].option, 1u);

  const JobId waiting = cluster.submit(cluster.job(16));
  const auto full = [&] {
    cluster.wait(Duration::minutes(11));
    cluster.pass("hardware-aware", PassKind::kFull);
    return cluster.find(mover)->gangs[0].option;
  };
  EXPECT_EQ(full(), 1u) << "there is no room";
  cluster.finish(holder);
  EXPECT_EQ(full(), 1u) << "somebody waits for that type";
  cluster.withdraw(waiting);
  EXPECT_EQ(full(), 0u);
  EXPECT_EQ(full(), 0u) << "and it stays";
}

TEST(Scheduler, AJobLeavesForNoPlaceThatClosesBeforeItsEnd) {
  for (const auto& [from, option] :
       {std::pair(Duration::hours(11), 1U), std::pair(Duration::hours(14), 0U)}) {
    TestCluster cluster(
        one_hall("    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
                 "dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n"));
    const JobId holder = cluster.submit(cluster.job(8));
    cluster.pass("hardware-aware");
    const NodeId wanted = cluster.find(holder)->gangs[0].allocation.ranks[0].node;
    JobRequest either = cluster.job(8, Duration::hours(12));
    either.preemptible = true;
    either.roles[0].options.push_back({cluster.gang(8, "nvidia-a100-sxm4-80g"), 0.4, std::nullopt});
    const JobId mover = cluster.submit(either);
    cluster.pass("hardware-aware");
    ASSERT_EQ(cluster.find(mover)->gangs[0].option, 1u);
    cluster.close(wanted, from);
    cluster.wait(Duration::minutes(11));
    cluster.finish(holder);
    cluster.pass("hardware-aware", PassKind::kFull);
    EXPECT_EQ(cluster.find(mover)->gangs[0].option, option) << from.text();
  }
}

TEST(Scheduler, AnElasticJobGrowsBesideNodesThatCloseBeforeItsEnd) {
  for (const auto& [from, devices] :
       {std::pair(Duration::hours(1), 24U), std::pair(Duration::hours(30), 32U)}) {
    TestCluster cluster(one_hall(
        "    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: dgx-h100, "
        "count: 4}]\n"));
    const JobId holder = cluster.submit(cluster.job(24));
    cluster.pass("hardware-aware");
    JobRequest elastic = cluster.job(32, Duration::hours(4));
    RoleRequest& role = elastic.roles[0];
    role.devices_min = 8;
    for (const std::uint32_t size : {24U, 16U, 8U}) {
      role.options.push_back({cluster.gang(size), size / 32.0, std::nullopt});
    }
    const JobId grows = cluster.submit(elastic);
    cluster.pass("hardware-aware");
    ASSERT_EQ(cluster.find(grows)->devices(), 8u);
    cluster.close(cluster.find(holder)->gangs[0].allocation.ranks[0].node, from);
    cluster.wait(Duration::minutes(11));
    cluster.finish(holder);
    cluster.pass("hardware-aware", PassKind::kFull);
    EXPECT_EQ(cluster.find(grows)->devices(), devices) << from.text();
  }
}

TEST(Scheduler, EasyLetsShortJobsPassTheFirstInTheQueueButNeverDelaysIt) {
  TestCluster cluster;
  cluster.submit(cluster.job(96, Duration::hours(2)));
  cluster.pass("easy");
  const JobId first = cluster.submit(cluster.job(64, Duration::hours(1)));
  const JobId longer = cluster.submit(cluster.job(32, Duration::hours(3)));
  const JobId shorter = cluster.submit(cluster.job(32, Duration::hours(1)));
  const PassResult result = cluster.pass("easy");
  ASSERT_EQ(result.reservations.size(), 1u);
  EXPECT_EQ(result.reservations[0].job, first);
  EXPECT_EQ((result.reservations[0].start - cluster.now()).count_seconds(), 7200);
  // Four nodes are free and the reservation needs four of the others as well as none of these: the
  // longer one fits beside the reservation, the shorter has no place left.
  EXPECT_TRUE(cluster.runs(longer));
  EXPECT_FALSE(cluster.runs(shorter));
}

// An early reservation keeps two of the four free nodes and a late one all of them: a job that ends
// between the two gets the other two.
TEST(Scheduler, AJobThatEndsBeforeALateSlotStartsBesideTheEarlyOne) {
  TestCluster cluster;
  cluster.submit(cluster.job(64, Duration::hours(1)));
  cluster.submit(cluster.job(32, Duration::hours(10)));
  cluster.pass("conservative");
  const JobId early = cluster.submit(cluster.job(80, Duration::hours(1)));
  const JobId late = cluster.submit(cluster.job(128, Duration::hours(1)));
  const JobId between = cluster.submit(cluster.job(16, Duration::hours(3)));
  const PassResult result = cluster.pass("conservative", PassKind::kFull);
  ASSERT_EQ(result.reservations.size(), 2u);
  EXPECT_EQ(result.reservations[0].job, early);
  EXPECT_EQ((result.reservations[0].start - cluster.now()).count_seconds(), 3600);
  EXPECT_EQ(result.reservations[1].job, late);
  EXPECT_TRUE(cluster.runs(between));
}

/// A job of so many thousandths of a device.
JobRequest share_of(const TestCluster& cluster, std::uint16_t share, Duration estimate) {
  JobRequest job = cluster.job(1, estimate);
  job.roles[0].options[0].gang.share = share;
  return job;
}

std::string one_node() {
  return one_hall(
      "    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: dgx-h100, "
      "count: 1}]\n");
}

// They would have to leave again, and jobs that left before them could come back meanwhile.
TEST(Scheduler, NobodyIsPutBesideSharesThatLeaveForSomebodyElse) {
  TestCluster cluster(one_node());
  JobRequest part = share_of(cluster, 400, Duration::hours(1));
  part.preemptible = true;
  const JobId first = cluster.submit(part);
  const JobId second = cluster.submit(part);
  cluster.pass("capacity");
  ASSERT_EQ(cluster.find(first)->gangs[0].allocation, cluster.find(second)->gangs[0].allocation);
  JobRequest whole = cluster.job(8);
  whole.priority = 1;
  const JobId urgent = cluster.submit(whole);
  const JobId small = cluster.submit(share_of(cluster, 200, Duration::hours(1)));
  cluster.let_victims_linger();
  cluster.pass("capacity");
  EXPECT_TRUE(cluster.find(first)->stopping && cluster.find(second)->stopping);
  EXPECT_FALSE(cluster.runs(small));
  cluster.stop(first);
  cluster.pass("capacity");
  EXPECT_FALSE(cluster.runs(first));
  EXPECT_FALSE(cluster.runs(small));
  cluster.stop(second);
  cluster.pass("capacity");
  EXPECT_TRUE(cluster.runs(urgent));
}

TEST(Scheduler, AShareDelaysNobodyWhoWillHaveTheWholeDevice) {
  TestCluster cluster(one_node());
  cluster.submit(share_of(cluster, 400, Duration::hours(2)));
  cluster.pass("easy");
  const JobId first = cluster.submit(cluster.job(8));
  const JobId longer = cluster.submit(share_of(cluster, 300, Duration::hours(3)));
  const JobId shorter = cluster.submit(share_of(cluster, 300, Duration::hours(1)));
  const PassResult result = cluster.pass("easy");
  ASSERT_EQ(result.reservations.size(), 1u);
  EXPECT_EQ(result.reservations[0].job, first);
  EXPECT_FALSE(cluster.runs(longer));
  EXPECT_TRUE(cluster.runs(shorter));
}

TEST(Scheduler, AVictimThatIsElasticGoesOnWithLess) {
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b, guarantee: {h100: 64}}\n");
  JobRequest elastic = cluster.job(128, Duration::hours(8));
  elastic.tenant = *cluster.tenants().find("a");
  elastic.preemptible = true;
  elastic.roles[0].devices_min = 32;
  for (const std::uint32_t devices : {64u, 32u}) {
    elastic.roles[0].options.push_back({cluster.gang(devices), devices / 128.0, std::nullopt});
  }
  const JobId large = cluster.submit(elastic);
  cluster.pass("capacity");
  ASSERT_TRUE(cluster.runs(large));
  cluster.wait(Duration::hours(1));
  JobRequest owner = cluster.job(64);
  owner.tenant = *cluster.tenants().find("b");
  const JobId claimed = cluster.submit(owner);
  for (int i = 0; i < 4; ++i) cluster.pass("capacity");
  EXPECT_TRUE(cluster.runs(claimed));
  ASSERT_TRUE(cluster.runs(large));
  EXPECT_EQ(cluster.find(large)->devices(), 64u);
  cluster.finish(claimed);
  cluster.wait(Duration::hours(1));
  cluster.pass("capacity", PassKind::kFull);
  EXPECT_EQ(cluster.find(large)->devices(), 128u);
}

// An elastic job has devices beyond its least only as long as no job waits for them, and it is
// never stopped for that.
std::string two_nodes() {
  return one_hall(
      "    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: "
      "2}]\n");
}

enum class Preemptible : std::uint8_t { kNo, kYes };

/// A job that may have 8 to 16 devices, and has them all.
JobId start_elastic(TestCluster& cluster, Preemptible preemptible) {
  JobRequest wide = cluster.job(16, Duration::hours(10));
  wide.preemptible = preemptible == Preemptible::kYes;
  wide.roles[0].devices_min = 8;
  wide.roles[0].options.push_back({cluster.gang(8), 0.5, std::nullopt});
  const JobId elastic = cluster.submit(wide);
  cluster.pass("hardware-aware");
  return elastic;
}

TEST(Scheduler, AnElasticJobGivesBackWhatSomebodyElseWaitsFor) {
  TestCluster cluster(two_nodes());
  const JobId elastic = start_elastic(cluster, Preemptible::kYes);
  ASSERT_EQ(cluster.find(elastic)->devices(), 16u);
  JobRequest equal = cluster.job(8);
  equal.preemptible = true;
  const JobId second = cluster.submit(equal);
  cluster.pass("hardware-aware");
  EXPECT_EQ(cluster.find(elastic)->devices(), 16u) << "it has run for no time yet";
  cluster.wait(Duration::minutes(11));
  for (int i = 0; i < 2; ++i) cluster.pass("hardware-aware");
  EXPECT_EQ(cluster.find(elastic)->devices(), 8u);
  EXPECT_TRUE(cluster.runs(second));
  const JobId third = cluster.submit(equal);
  cluster.wait(Duration::minutes(11));
  for (int i = 0; i < 2; ++i) cluster.pass("hardware-aware:yield_ratio=0");
  EXPECT_EQ(cluster.find(elastic)->devices(), 8u) << "that is its least";
  EXPECT_FALSE(cluster.runs(third));
}

TEST(Scheduler, AnElasticJobGivesBackAtOnceToAHigherRankThoughItMayNotBeStopped) {
  TestCluster cluster(two_nodes());
  const JobId elastic = start_elastic(cluster, Preemptible::kNo);
  ASSERT_EQ(cluster.find(elastic)->devices(), 16u);
  JobRequest urgent = cluster.job(8);
  urgent.preemptible = false;
  urgent.priority = 50;
  const JobId second = cluster.submit(urgent);
  for (int i = 0; i < 2; ++i) cluster.pass("hardware-aware");
  ASSERT_TRUE(cluster.find(elastic) != nullptr) << "it was not stopped";
  EXPECT_EQ(cluster.find(elastic)->devices(), 8u);
  EXPECT_TRUE(cluster.runs(second));
}

// The job would give up more than its tenant has above its guarantee.
TEST(Scheduler, AnElasticJobGivesNothingBackOfWhatIsGuaranteed) {
  for (const int guaranteed : {8, 12}) {
    TestCluster cluster(
        one_hall("    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
                 "dgx-h100, count: 2}]\n"),
        "- {name: a, guarantee: {h100: " + std::to_string(guaranteed) + "}}\n- {name: b}\n");
    JobRequest wide = cluster.job(16, Duration::hours(10));
    wide.tenant = *cluster.tenants().find("a");
    wide.preemptible = true;
    wide.roles[0].devices_min = 8;
    wide.roles[0].options.push_back({cluster.gang(8), 0.5, std::nullopt});
    const JobId elastic = cluster.submit(wide);
    cluster.pass("hardware-aware");
    JobRequest other = cluster.job(8);
    other.tenant = *cluster.tenants().find("b");
    const JobId second = cluster.submit(other);
    cluster.wait(Duration::minutes(11));
    for (int i = 0; i < 2; ++i) cluster.pass("hardware-aware");
    EXPECT_EQ(cluster.find(elastic)->devices(), guaranteed == 8 ? 8U : 16U);
    EXPECT_EQ(cluster.runs(second), guaranteed == 8);
  }
}

TEST(Scheduler, TheMemoOfRefusalsNeverChangesAnAnswer) {
  for (const char* policy : {"fifo:blocking=false", "easy", "conservative", "hardware-aware"}) {
    TestCluster cluster;
    Rng rng(11);
    for (int step = 0; step < 60; ++step) {
      JobRequest job = cluster.job(static_cast<std::uint32_t>(1 + rng.below(40)),
                                   Duration::minutes(static_cast<std::int64_t>(5 + rng.below(90))));
      job.class_id = ClassId(job.roles[0].devices_max);
      cluster.submit(job);
      if (!cluster.running().empty() && rng.below(2) == 0) {
        cluster.finish(cluster.running()[rng.below(cluster.running().size())].id);
      }
      cluster.wait(Duration::minutes(1));
      const PassKind kind = rng.below(4) == 0 ? PassKind::kFull : PassKind::kIncremental;
      Scheduler fresh(cluster.tree());
      const Policy rules = *policy_named(policy);
      const std::string expected = shown(fresh.decide(cluster.situation(), rules, kind));
      EXPECT_EQ(shown(cluster.pass(policy, kind)), expected) << policy << " step " << step;
    }
  }
}

}  // namespace
}  // namespace orrery

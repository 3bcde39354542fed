// Tests of which large jobs the default policy keeps reservations for, and that none waits for ever
// without one.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "scheduler/place/cluster_test.hpp"

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

/// Fills a cluster with jobs of one node for an hour, the last of which is `last`.
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

TEST(KeptSlots, AJobThatMayOvertakeAllOthersOfItsTenantKeepsNone) {
  TestCluster cluster;
  fill(cluster, resuming(cluster, 8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(2)));
  EXPECT_EQ(slots(cluster), 0u);
  EXPECT_EQ(slots(cluster, "hardware-aware:version=2"), 1u);
  EXPECT_EQ(slots(cluster, "hardware-aware:max_stretch=0"), 1u);
  EXPECT_EQ(slots(cluster, "hardware-aware:yield_ratio=0"), 1u) << "nobody overtakes";
}

TEST(KeptSlots, AJobKeepsOneWhereAnotherMayNotBeOvertaken) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(2)));
  EXPECT_EQ(slots(cluster), 1u) << "it is not preemptible";
  TestCluster without_checkpoints;
  JobRequest last = resuming(without_checkpoints, 8, Duration::hours(1));
  last.checkpoint_interval = Duration::max();
  fill(without_checkpoints, last);
  without_checkpoints.submit(resuming(without_checkpoints, kAll, Duration::hours(2)));
  EXPECT_EQ(slots(without_checkpoints), 1u);
}

TEST(KeptSlots, AJobThatFindsRoomWithoutTheOthersOfItsTenantKeepsNone) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll - 8, Duration::hours(2)));
  EXPECT_EQ(slots(cluster), 0u);
}

// The jobs that run end in an hour, for which devices would be empty; jobs like them have too much
// service to overtake the gang.
TEST(KeptSlots, AJobOfALongRunKeepsOneThatEmptiesDevicesForAShortTime) {
  for (const std::int64_t hours : {3, 4}) {
    TestCluster cluster;
    for (int job = 0; job < 2; ++job) {
      cluster.submit(resuming(cluster, kAll / 2, Duration::hours(10)));
    }
    cluster.pass(kDefault);
    cluster.wait(Duration::hours(9));
    cluster.submit(resuming(cluster, kAll, Duration::hours(hours)));
    EXPECT_EQ(slots(cluster), hours == 4 ? 1u : 0u);
  }
}

// It would empty the devices, run for its quantum, and be overtaken by the next job that comes.
TEST(KeptSlots, AJobThatJobsLikeThoseThatRunWouldOvertakeKeepsNone) {
  TestCluster cluster;
  fill(cluster, resuming(cluster, 8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll, Duration::hours(4)));
  EXPECT_EQ(slots(cluster), 0u);
  EXPECT_EQ(slots(cluster, "hardware-aware:version=2"), 1u);
}

// All that run are in their quantum, after which a gang of a minute overtakes them, one of three
// hours does not.
TEST(KeptSlots, AShortJobKeepsOneUntilJobsHaveHadTheirQuantum) {
  for (const std::int64_t minutes : {1, 180}) {
    TestCluster cluster;
    fill(cluster, resuming(cluster, 8, Duration::hours(10)));
    cluster.submit(resuming(cluster, kAll, Duration::minutes(minutes)));
    EXPECT_EQ(slots(cluster), minutes == 1 ? 1u : 0u);
  }
}

TEST(KeptSlots, AJobThatHasWaitedForTheAgeingKeepsOne) {
  TestCluster cluster;
  cluster.submit(resuming(cluster, kAll, Duration::hours(100)));
  cluster.pass(kDefault);
  cluster.submit(resuming(cluster, kAll, Duration::hours(60)));
  const std::string policy = "hardware-aware:ageing=2 h,yield_ratio=1000";
  cluster.wait(Duration::minutes(119));
  EXPECT_EQ(slots(cluster, policy), 0u);
  cluster.wait(Duration::minutes(1));
  EXPECT_EQ(slots(cluster, policy), 1u);
}

TEST(KeptSlots, JobsThatKeepNoneLeaveTheOnesThatThereAreToOthers) {
  TestCluster cluster;
  fill(cluster, cluster.job(8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll - 8, Duration::hours(1)));
  cluster.submit(resuming(cluster, kAll - 8, Duration::hours(1)));
  const JobId whole = cluster.submit(resuming(cluster, kAll, Duration::hours(2)));
  const PassResult result = cluster.pass("hardware-aware:reserve_jobs=1", PassKind::kFull);
  ASSERT_EQ(result.reservations.size(), 1u);
  EXPECT_EQ(result.reservations.front().job, whole);
}

TEST(KeptSlots, AllGangsOfARoleHaveToFindRoom) {
  for (const std::uint32_t gangs : {3U, 4U}) {
    TestCluster cluster;
    fill(cluster, cluster.job(8, Duration::hours(1)));
    JobRequest request = resuming(cluster, 32, Duration::hours(2));
    request.roles[0].gangs = gangs;
    cluster.submit(request);
    EXPECT_EQ(slots(cluster), gangs == 4 ? 1u : 0u);
  }
}

TEST(KeptSlots, AJobKeepsOneWhereAnotherTenantHasTheDevices) {
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n");
  JobRequest theirs = resuming(cluster, kAll, Duration::hours(1));
  theirs.tenant = *cluster.tenants().find("a");
  cluster.submit(theirs);
  cluster.pass(kDefault);
  JobRequest mine = resuming(cluster, kAll, Duration::hours(2));
  mine.tenant = *cluster.tenants().find("b");
  cluster.submit(mine);
  EXPECT_EQ(slots(cluster), 1u);
}

/// Jobs of one node come and end, one after each `step`, so that the 16 nodes are always full; at
/// the beginning a job of all devices comes, for 20 minutes. Returns the time until it starts;
/// none: not within 600 steps.
std::optional<Duration> time_until_start(Duration step, const std::string& policy) {
  constexpr std::int64_t kNodes = kAll / 8;
  TestCluster cluster;
  const auto come = [&](std::int64_t steps) {
    const Duration estimate = Duration::nanoseconds(step.count_ns() * steps);
    return cluster.submit(resuming(cluster, 8, estimate));
  };
  for (std::int64_t node = 1; node <= kNodes; ++node) come(node);
  cluster.pass(policy, PassKind::kFull);
  const Instant begin = cluster.now();
  const JobId whole = cluster.submit(resuming(cluster, kAll, Duration::minutes(20)));
  for (int steps = 0; steps < 600; ++steps) {
    cluster.wait(step);
    std::vector<JobId> ended;
    ended.reserve(cluster.running().size());
    for (const RunningJob& job : cluster.running()) {
      if (job.expected_end <= cluster.now()) ended.push_back(job.id);
    }
    for (const JobId job : ended) cluster.finish(job);
    come(kNodes);
    cluster.pass(policy, PassKind::kFull);
    cluster.pass(policy, PassKind::kFull);
    if (cluster.runs(whole)) return cluster.now() - begin;
  }
  return std::nullopt;
}

// The job's service of 42 device-hours puts it before each job that comes, which has 51, but is too
// much to overtake those. Its aged service is half of that at 3 h 20 min, ten times its run, and
// later low enough to overtake all of them, also those that end soon.
TEST(KeptSlots, AJobOvertakesJobsOfItsTenantOnceItHasWaitedForManyTimesItsRun) {
  const Duration step = Duration::minutes(24);
  const std::optional<Duration> by_default = time_until_start(step, kDefault);
  ASSERT_TRUE(by_default);
  EXPECT_GE(*by_default, Duration::hours(12));
  EXPECT_LE(*by_default, Duration::hours(20));
  const std::optional<Duration> soon = time_until_start(step, "hardware-aware:max_stretch=10");
  ASSERT_TRUE(soon);
  EXPECT_LE(*soon, Duration::hours(4));
  EXPECT_FALSE(time_until_start(step, "hardware-aware:max_stretch=10000"));
}

// All running jobs are beyond their estimates: at twice the estimate, the work left is expected to
// be as much as the estimate was.
TEST(KeptSlots, AJobOvertakesJobsThatRunBeyondTheirEstimates) {
  for (const char* policy : {"hardware-aware", "hardware-aware:max_stretch=0"}) {
    TestCluster cluster;
    fill(cluster, resuming(cluster, 8, Duration::hours(1)));
    cluster.wait(Duration::hours(2));
    cluster.submit(resuming(cluster, 8, Duration::minutes(40)));
    EXPECT_TRUE(cluster.pass(policy).decisions.empty()) << "more than half of what each has left";
    cluster.submit(resuming(cluster, 8, Duration::minutes(20)));
    const bool overtakes = std::string(policy) == kDefault;
    EXPECT_EQ(cluster.pass(policy).decisions.empty(), !overtakes) << policy;
  }
}

// Jobs of 8 minutes are never overtaken: each ends within its quantum.
TEST(KeptSlots, AJobThatCountsForNothingKeepsASlotAmongJobsThatEndWithinTheirQuantum) {
  const Duration step = Duration::seconds(30);
  const std::optional<Duration> soon = time_until_start(step, "hardware-aware:max_stretch=10");
  ASSERT_TRUE(soon);
  EXPECT_LE(*soon, Duration::hours(4));
  EXPECT_FALSE(time_until_start(step, "hardware-aware:max_stretch=1000"));
}

// The stretch of a job of unknown length is not known.
TEST(KeptSlots, AJobOfUnknownLengthKeepsOneFromTheBeginning) {
  TestCluster cluster;
  fill(cluster, resuming(cluster, 8, Duration::hours(1)));
  JobRequest unknown = resuming(cluster, kAll, Duration::hours(2));
  unknown.estimate.reset();
  cluster.submit(unknown);
  EXPECT_EQ(slots(cluster), 1u);
}

}  // namespace
}  // namespace orrery

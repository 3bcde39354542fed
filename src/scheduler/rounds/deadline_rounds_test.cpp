// Whole passes under `elasticflow`: promised deadlines and the devices that are left for other
// jobs.
#include <array>
#include <map>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// A node of eight H100.
std::string one_node() {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
      "dgx-h100, count: 1}]\n");
}

/// A preemptible job of ten hours that writes checkpoints.
JobRequest saving(const TestCluster& cluster, std::uint32_t devices) {
  JobRequest job = cluster.job(devices, Duration::hours(10));
  job.checkpoint_interval = Duration::minutes(10);
  job.preemptible = true;
  return job;
}

std::uint32_t option_of(const TestCluster& cluster, JobId id) {
  const RunningJob* job = cluster.find(id);
  return job == nullptr ? 99 : job->gangs.front().option;
}

/// A job of one hour on eight devices, or two thirds as fast on four, that is due in `hours`.
JobRequest due(const TestCluster& cluster, double hours) {
  JobRequest job = saving(cluster, 8);
  job.estimate = Duration::hours(1);
  job.roles.front().options.push_back({cluster.gang(4), 2 / 3.0, std::nullopt});
  job.roles.front().devices_min = 4;
  job.deadline = cluster.now() + Duration::from_seconds(hours * 3600);
  return job;
}

/// Plays rounds of four minutes in which jobs end when they are expected to; returns when each
/// ended.
std::map<JobId, Instant> play_rounds(TestCluster& cluster, int count) {
  std::map<JobId, Instant> ends;
  for (int i = 0; i < count; ++i) {
    cluster.pass("elasticflow", PassKind::kFull);
    cluster.pass("elasticflow");
    cluster.wait(Duration::minutes(4));
    const std::vector<RunningJob> running = cluster.running();
    for (const RunningJob& job : running) {
      if (job.expected_end > cluster.now()) continue;
      ends[job.id] = job.expected_end;
      cluster.finish(job.id);
    }
  }
  return ends;
}

TEST(DeadlineRounds, JobsShareDevicesThatOneAfterTheOtherWouldBeLateOn) {
  // If the jobs run one after the other on all eight devices, they are done at 1 h and 2 h.
  TestCluster cluster(one_node());
  const JobId first = cluster.submit(due(cluster, 1.5));
  const JobId second = cluster.submit(due(cluster, 1.75));
  cluster.pass("elasticflow", PassKind::kFull);
  EXPECT_EQ(option_of(cluster, first), 1u);
  EXPECT_EQ(option_of(cluster, second), 1u);
  const auto ends = play_rounds(cluster, 30);
  EXPECT_LE(ends.at(first), *cluster.request(first).deadline);
  EXPECT_LE(ends.at(second), *cluster.request(second).deadline);
}

TEST(DeadlineRounds, PromisedDeadlinesHoldAgainstLaterJobs) {
  TestCluster cluster(one_node());
  std::array<JobId, 2> promised;
  for (JobId& id : promised) id = cluster.submit(due(cluster, 1.8));
  play_rounds(cluster, 1);
  EXPECT_EQ(cluster.share_period().jobs.size(), 2u);
  const JobId urgent = cluster.submit(due(cluster, 1.2));
  const JobId without = cluster.submit(saving(cluster, 4));
  const auto ends = play_rounds(cluster, 60);
  for (const JobId id : promised) EXPECT_LE(ends.at(id), *cluster.request(id).deadline);
  EXPECT_GT(ends.at(urgent), *cluster.request(urgent).deadline);
  EXPECT_TRUE(ends.contains(urgent)) << "it has what is left";
  EXPECT_TRUE(cluster.runs(without));
}

TEST(DeadlineRounds, ADeadlineTakesDevicesInTimeAndJobsGrowAfterIt) {
  TestCluster cluster(one_node());
  JobRequest elastic = due(cluster, 0);
  elastic.deadline.reset();
  elastic.estimate = Duration::hours(10);
  const JobId grows = cluster.submit(elastic);
  play_rounds(cluster, 1);
  EXPECT_EQ(option_of(cluster, grows), 0u);
  const JobId rigid = cluster.submit(saving(cluster, 8));
  JobRequest dated = saving(cluster, 4);
  dated.estimate = Duration::hours(1);
  dated.deadline = cluster.now() + Duration::hours(3);
  const JobId in_time = cluster.submit(dated);
  play_rounds(cluster, 2);
  EXPECT_EQ(option_of(cluster, grows), 1u);
  EXPECT_TRUE(cluster.runs(in_time)) << "half of the node comes free for it";
  EXPECT_LE(play_rounds(cluster, 16).at(in_time), *dated.deadline);
  play_rounds(cluster, 1);
  EXPECT_EQ(option_of(cluster, grows), 0u);
  EXPECT_FALSE(cluster.runs(rigid)) << "it came later";
}

/// A job of eight devices that takes an hour and has to be done within `until` from now.
JobRequest dated(const TestCluster& cluster, Duration until) {
  JobRequest job = saving(cluster, 8);
  job.estimate = Duration::hours(1);
  job.deadline = cluster.now() + until;
  return job;
}

/// The number of deadlines promised to a dated job that comes when a job of one hour without
/// checkpoints has had the whole node for `after`.
std::size_t promises_beside_a_rigid_job(Duration after, Duration until) {
  TestCluster cluster(one_node());
  cluster.submit(cluster.job(8, Duration::hours(1)));
  cluster.pass("elasticflow");
  cluster.wait(after);
  cluster.submit(dated(cluster, until));
  cluster.pass("elasticflow", PassKind::kFull);
  return cluster.share_period().jobs.size();
}

TEST(DeadlineRounds, DevicesOfJobsThatEndInTimeArePromised) {
  EXPECT_EQ(promises_beside_a_rigid_job(Duration(), Duration::minutes(132)), 1u);
  EXPECT_EQ(promises_beside_a_rigid_job(Duration(), Duration::minutes(108)), 0u);
}

TEST(DeadlineRounds, AJobBeyondItsEstimateIsTakenToRunForAsLongAgain) {
  const Duration overdue = Duration::minutes(90);
  EXPECT_EQ(promises_beside_a_rigid_job(overdue, Duration::minutes(156)), 1u);
  EXPECT_EQ(promises_beside_a_rigid_job(overdue, Duration::minutes(144)), 0u);
}

TEST(DeadlineRounds, ARestartIsHeldInReserve) {
  for (const auto& [minutes, promised] : {std::pair{71, 1u}, {69, 0u}}) {
    TestCluster cluster(one_node());
    JobRequest restarts = dated(cluster, Duration::minutes(minutes));
    restarts.restart = Duration::minutes(10);
    cluster.submit(restarts);
    cluster.pass("elasticflow", PassKind::kFull);
    EXPECT_EQ(cluster.share_period().jobs.size(), promised) << minutes;
  }
}

TEST(DeadlineRounds, DevicesOfAJobWhoseTurnMayNotEndYetAreNotPromised) {
  // The job's turn ends 40 minutes after it began at the earliest, and five have passed.
  struct Case {
    Duration checkpoint_cost;
    std::string policy;
  };
  for (const Case& why : {Case{Duration::minutes(1), "elasticflow"},
                          Case{Duration(), "elasticflow:min_run=40 min"}}) {
    for (const auto& [minutes, promised] : {std::pair{99, 1u}, {93, 0u}}) {
      TestCluster cluster(one_node());
      JobRequest runs = saving(cluster, 8);
      runs.checkpoint_interval = Duration::minutes(40);
      runs.checkpoint_cost = why.checkpoint_cost;
      cluster.submit(runs);
      cluster.pass(why.policy);
      cluster.wait(Duration::minutes(5));
      cluster.submit(dated(cluster, Duration::minutes(minutes)));
      cluster.pass(why.policy, PassKind::kFull);
      EXPECT_EQ(cluster.share_period().jobs.size(), promised) << why.policy << " " << minutes;
    }
  }
}

TEST(DeadlineRounds, APromiseHoldsWhileTheTurnMayNotEnd) {
  TestCluster cluster(one_node());
  JobRequest runs = dated(cluster, Duration::hours(2));
  runs.checkpoint_interval = Duration::minutes(40);
  runs.checkpoint_cost = Duration::minutes(1);
  const JobId promised = cluster.submit(runs);
  play_rounds(cluster, 3);
  cluster.submit(dated(cluster, Duration::minutes(90)));
  cluster.pass("elasticflow", PassKind::kFull);
  EXPECT_EQ(cluster.share_period().jobs, std::vector{promised});
  EXPECT_TRUE(cluster.runs(promised));
}

TEST(DeadlineRounds, ManyJobsThatCanBePromisedNothingDoNotShutOthersOut) {
  TestCluster cluster(one_node());
  JobRequest unknown = dated(cluster, Duration::hours(100));
  unknown.estimate.reset();
  for (std::size_t i = 0; i < kRoundJobs; ++i) {
    cluster.submit(dated(cluster, Duration::minutes(-1)));
    cluster.submit(unknown);
  }
  const JobId in_time = cluster.submit(dated(cluster, Duration::minutes(62)));
  cluster.pass("elasticflow", PassKind::kFull);
  EXPECT_EQ(cluster.share_period().jobs, std::vector{in_time});
  EXPECT_TRUE(cluster.runs(in_time));
}

TEST(DeadlineRounds, APromiseHoldsBehindManyEarlierJobs) {
  TestCluster cluster(one_node());
  for (std::size_t i = 0; i < kRoundJobs; ++i) {
    cluster.submit(dated(cluster, Duration::hours(10)));
  }
  const JobId promised = cluster.submit(dated(cluster, Duration::minutes(62)));
  cluster.promise(promised);
  cluster.pass("elasticflow", PassKind::kFull);
  EXPECT_TRUE(std::ranges::binary_search(cluster.share_period().jobs, promised));
  EXPECT_TRUE(cluster.runs(promised));
}

TEST(DeadlineRounds, NothingIsPromisedToJobsOfUnknownLength) {
  TestCluster cluster(one_node());
  JobRequest unknown = due(cluster, 10);
  unknown.estimate.reset();
  const JobId id = cluster.submit(unknown);
  cluster.pass("elasticflow", PassKind::kFull);
  EXPECT_TRUE(cluster.share_period().jobs.empty());
  EXPECT_EQ(option_of(cluster, id), 0u);
}

}  // namespace
}  // namespace orrery

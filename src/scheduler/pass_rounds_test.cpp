#include <array>

#include "scheduler/cluster_test.hpp"

namespace orrery {
namespace {

/// A node of eight H100, and one of eight A100.
std::string two_types() {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
      "dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n");
}

/// A job that writes checkpoints.
JobRequest saving(const TestCluster& cluster, std::uint32_t devices) {
  JobRequest job = cluster.job(devices, Duration::hours(10));
  job.checkpoint_interval = Duration::minutes(10);
  return job;
}

/// On H100, or on A100 at another speed.
JobRequest on_either(const TestCluster& cluster, std::uint32_t devices, double speed) {
  JobRequest job = saving(cluster, devices);
  job.roles.front().options.push_back({cluster.gang(devices, "a100"), speed, std::nullopt});
  return job;
}

std::uint32_t option_of(const TestCluster& cluster, JobId id) {
  const RunningJob* job = cluster.find(id);
  return job == nullptr ? 99 : job->gangs.front().option;
}

TEST(PassRounds, AFullPassGivesDevicesToWhoHasHadLeast) {
  TestCluster cluster(two_types());
  std::vector<JobId> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(cluster.submit(saving(cluster, 4)));
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(jobs[0]) && cluster.runs(jobs[1]) && !cluster.runs(jobs[2]));
  cluster.wait(Duration::minutes(6));
  cluster.pass("gavel");
  EXPECT_FALSE(cluster.runs(jobs[2])) << "nobody leaves between rounds";
  const PassResult round = cluster.pass("gavel", PassKind::kFull);
  ASSERT_EQ(round.reservations.size(), 1u);
  EXPECT_EQ(round.reservations[0].job, jobs[2]);
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(jobs[2]));
  EXPECT_EQ(cluster.running().size(), 2u);
}

TEST(PassRounds, EverybodyHasAnEqualPartOfTheTime) {
  TestCluster cluster(two_types());
  std::vector<JobId> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(cluster.submit(saving(cluster, 4)));
  for (int round = 0; round < 50; ++round) {
    cluster.pass("gavel", PassKind::kFull);
    cluster.pass("gavel");
    EXPECT_EQ(cluster.running().size(), 2u);
    cluster.wait(Duration::minutes(6));
  }
  for (const JobId id : jobs) {
    const double hours = cluster.device_hours(id, *cluster.fleet().topology().find_type("h100"));
    EXPECT_NEAR(hours, 8 * 5 / 5.0, 8 * 0.1 + 0.01);
  }
}

TEST(PassRounds, TheTimeOnEachTypeIsThatOfTheProgram) {
  // The example of Gavel's section 4.1: 4, 3 and 2 times as fast on the first type.
  TestCluster cluster(two_types());
  const std::array<std::array<double, 2>, 3> parts{
      {{5 / 11.0, 0}, {5 / 11.0, 1 / 11.0}, {1 / 11.0, 10 / 11.0}}};
  std::array<JobId, 3> jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = cluster.submit(on_either(cluster, 8, 1.0 / (4.0 - static_cast<double>(i))));
  }
  constexpr int kRounds = 110;
  for (int round = 0; round < kRounds; ++round) {
    cluster.pass("gavel", PassKind::kFull);
    cluster.pass("gavel");
    EXPECT_EQ(cluster.running().size(), 2u);
    cluster.wait(Duration::minutes(6));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::size_t t = 0; t < 2; ++t) {
      const FleetTypeId type = cluster.gang(8, t == 0 ? "h100" : "a100").type;
      const double part = cluster.device_hours(jobs[i], type) / (8 * kRounds * 0.1);
      EXPECT_NEAR(part, parts[i][t], 0.08) << "job " << i << " on type " << t;
    }
  }
}

TEST(PassRounds, WhoCannotGoOnLaterKeepsItsDevices) {
  TestCluster cluster(two_types());
  const JobId begins_anew = cluster.submit(cluster.job(8));
  cluster.pass("gavel");
  cluster.wait(Duration::hours(1));
  const JobId other = cluster.submit(saving(cluster, 8));
  cluster.pass("gavel", PassKind::kFull);
  EXPECT_TRUE(cluster.runs(begins_anew));
  EXPECT_FALSE(cluster.runs(other));
}

TEST(PassRounds, NobodyLeavesBeforeMinRun) {
  for (const auto& [minutes, leaves] : {std::pair{2, false}, {4, true}}) {
    TestCluster cluster(two_types());
    const JobId first = cluster.submit(saving(cluster, 8));
    cluster.pass("gavel");
    cluster.wait(Duration::minutes(minutes));
    cluster.submit(saving(cluster, 8));
    cluster.pass("gavel", PassKind::kFull);
    EXPECT_EQ(cluster.runs(first), !leaves);
  }
}

TEST(PassRounds, WhoseDevicesNobodyWantsRunsOn) {
  TestCluster cluster(two_types());
  const JobId small = cluster.submit(saving(cluster, 2));
  cluster.pass("gavel");
  cluster.wait(Duration::hours(1));
  const PassResult round = cluster.pass("gavel", PassKind::kFull);
  EXPECT_TRUE(round.decisions.empty());
  EXPECT_TRUE(cluster.runs(small));
}

TEST(PassRounds, ServicesTakeNoTurns) {
  TestCluster cluster(two_types());
  JobRequest service = saving(cluster, 8);
  service.kind = JobKind::kServe;
  const JobId id = cluster.submit(service);
  cluster.pass("gavel");
  cluster.wait(Duration::hours(1));
  cluster.submit(saving(cluster, 8));
  cluster.pass("gavel", PassKind::kFull);
  EXPECT_TRUE(cluster.runs(id));
}

TEST(PassRounds, OtherOrdersTakeTurnsToo) {
  TestCluster cluster(two_types());
  const JobId first = cluster.submit(saving(cluster, 8));
  const std::string las = "las:preemption=rounds";
  cluster.pass(las);
  cluster.wait(Duration::hours(1));
  for (RunningJob& job : cluster.running()) job.attained = 8 * 3600;
  const JobId second = cluster.submit(saving(cluster, 8));
  cluster.pass(las, PassKind::kFull);
  EXPECT_FALSE(cluster.runs(first));
  cluster.pass(las);
  EXPECT_TRUE(cluster.runs(second));
}

TEST(PassRounds, UnderThemisTheJobsFurthestBehindTheirPartAreOfferedLeasesFirst) {
  TestCluster cluster(two_types());
  const JobId first = cluster.submit(saving(cluster, 8));
  cluster.pass("themis");
  cluster.wait(Duration::hours(2));
  JobRequest brief = saving(cluster, 8);
  brief.estimate = Duration::minutes(30);
  const JobId second = cluster.submit(brief);
  cluster.pass("themis", PassKind::kFull);
  EXPECT_TRUE(cluster.runs(first)) << "nobody has waited yet";
  cluster.wait(Duration::minutes(40));  // the short job is by now later in proportion
  cluster.pass("themis", PassKind::kFull);
  EXPECT_FALSE(cluster.runs(first));
  cluster.pass("themis");
  EXPECT_TRUE(cluster.runs(second));
}

TEST(PassRounds, UnderSiaJobsGrowIntoAnEmptyFleetAndMakeRoomForOthers) {
  TestCluster cluster(two_types());
  JobRequest elastic = saving(cluster, 8);
  elastic.restart = Duration::seconds(30);
  RoleRequest& role = elastic.roles.front();
  for (const std::uint32_t devices : {4U, 2U, 1U}) {
    role.options.push_back({cluster.gang(devices), devices / 8.0, std::nullopt});
  }
  role.devices_min = 1;
  const JobId first = cluster.submit(elastic);
  cluster.pass("sia", PassKind::kFull);
  EXPECT_EQ(option_of(cluster, first), 0u);
  cluster.wait(Duration::hours(1));
  const JobId second = cluster.submit(elastic);
  for (int round = 0; round < 2; ++round) {
    cluster.pass("sia", PassKind::kFull);
    cluster.pass("sia");
    cluster.wait(Duration::minutes(1));
  }
  EXPECT_EQ(option_of(cluster, first), 1u);
  EXPECT_EQ(option_of(cluster, second), 1u);
}

}  // namespace
}  // namespace orrery

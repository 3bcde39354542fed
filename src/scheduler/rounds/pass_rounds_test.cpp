#include <array>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// A node of eight H100, and one of eight A100.
std::string two_types() {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
      "dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]\n");
}

/// `count` nodes of eight H100.
std::string nodes(int count) {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
      "dgx-h100, count: " +
      std::to_string(count) + "}]\n");
}

/// A preemptible job that writes checkpoints.
JobRequest saving(const TestCluster& cluster, std::uint32_t devices) {
  JobRequest job = cluster.job(devices, Duration::hours(10));
  job.checkpoint_interval = Duration::minutes(10);
  job.preemptible = true;
  return job;
}

/// A preemptible job on H100, or on A100 at another speed.
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
  jobs.reserve(3);
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
  jobs.reserve(5);
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
    JobRequest job = on_either(cluster, 8, 1.0 / (4.0 - static_cast<double>(i)));
    job.class_id = ClassId(1);  // a class does not determine rates
    jobs[i] = cluster.submit(job);
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

TEST(PassRounds, WhoIsNotPreemptibleKeepsItsDevicesThoughItWritesCheckpoints) {
  for (const char* policy : {"gavel", "themis", "sia", "elasticflow"}) {
    TestCluster cluster(two_types());
    JobRequest stays = saving(cluster, 8);
    stays.preemptible = false;
    const JobId first = cluster.submit(stays);
    cluster.pass(policy);
    cluster.submit(saving(cluster, 8));
    for (int i = 0; i < 5; ++i) {
      cluster.wait(Duration::hours(1));
      cluster.pass(policy, PassKind::kFull);
      EXPECT_TRUE(cluster.runs(first)) << policy;
    }
  }
}

TEST(PassRounds, TellsWhyAJobWithATurnDoesNotStart) {
  for (const PassKind kind : {PassKind::kIncremental, PassKind::kFull}) {
    TestCluster cluster(nodes(2));
    JobRequest hungry = saving(cluster, 8);
    hungry.roles[0].options[0].gang.host.memory = 1U << 30U;
    const JobId never = cluster.submit(hungry);
    const JobId runs = cluster.submit(saving(cluster, 16));
    const JobId waits = cluster.submit(saving(cluster, 16));
    const PassResult result = cluster.pass("gavel", kind);
    EXPECT_TRUE(cluster.runs(runs));
    ASSERT_EQ(result.waiting.size(), 2u);
    EXPECT_EQ(result.waiting[0].job, never);
    const Refusal untold{RejectionKind::kBusy, TopologyLevel::kFleet, 0};
    EXPECT_NE(result.waiting[0].refusal, untold);
    EXPECT_EQ(result.waiting[1].job, waits);
    EXPECT_EQ(result.waiting[1].refusal, untold) << "it was no job's turn";
  }
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
  cluster.wait(Duration::minutes(40));  // the short job's relative delay is the larger one now
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

void round(TestCluster& cluster, const std::string& policy = "gavel") {
  cluster.pass(policy, PassKind::kFull);
  cluster.pass(policy);
}

const PreemptJob* preempted(const PassResult& result, JobId id) {
  for (const Decision& decision : result.decisions) {
    const auto* preempt = std::get_if<PreemptJob>(&decision);
    if (preempt != nullptr && preempt->job == id) return preempt;
  }
  return nullptr;
}

TEST(PassRounds, LaterSlotsOfAnotherPolicyAreNotTakenOver) {
  TestCluster cluster(nodes(2));
  cluster.submit(saving(cluster, 16));
  const JobId second = cluster.submit(saving(cluster, 16));
  const std::string slots = "conservative:reserve_devices=1";
  cluster.pass(slots, PassKind::kFull);
  ASSERT_EQ(cluster.pass(slots, PassKind::kFull).reservations.size(), 1u);
  const PassResult round = cluster.pass("gavel", PassKind::kFull);
  EXPECT_TRUE(round.reservations.empty() || round.reservations[0].start == cluster.now());
  cluster.wait(Duration::minutes(6));
  cluster.pass("gavel", PassKind::kFull);
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(second));
}

TEST(PassRounds, AJobThatMovesHasASlotWhereItGoes) {
  TestCluster cluster(two_types());
  const JobId first = cluster.submit(cluster.job(8));  // on H100, without checkpoints
  cluster.pass("gavel");
  const JobId mover = cluster.submit(on_either(cluster, 8, 0.5));
  round(cluster);
  ASSERT_EQ(option_of(cluster, mover), 1u);
  cluster.finish(first);
  cluster.wait(Duration::minutes(6));
  cluster.let_victims_linger();
  const PassResult moves = cluster.pass("gavel", PassKind::kFull);
  ASSERT_NE(preempted(moves, mover), nullptr);
  ASSERT_EQ(moves.reservations.size(), 1u);
  EXPECT_EQ(moves.reservations[0].job, mover);
  const JobId small = cluster.submit(saving(cluster, 1));
  const PassResult between = cluster.pass("gavel");
  EXPECT_EQ(between.reservations.size(), 1u) << "while it stops";
  EXPECT_FALSE(cluster.runs(small)) << "the H100 are kept for it";
  cluster.stop(mover);
  cluster.pass("gavel");
  EXPECT_EQ(option_of(cluster, mover), 0u);
}

TEST(PassRounds, AJobMovesToTheFastTypeAlthoughNobodyWaits) {
  TestCluster cluster(two_types());
  const JobId one = cluster.submit(on_either(cluster, 8, 0.5));
  const JobId other = cluster.submit(on_either(cluster, 8, 0.5));
  std::array<int, 2> on_fast{};
  for (int i = 0; i < 20; ++i) {
    round(cluster);
    on_fast[0] += option_of(cluster, one) == 0 ? 1 : 0;
    on_fast[1] += option_of(cluster, other) == 0 ? 1 : 0;
    cluster.wait(Duration::minutes(6));
  }
  EXPECT_EQ(on_fast[0] + on_fast[1], 20);
  EXPECT_NEAR(on_fast[0], 10, 1);
}

TEST(PassRounds, AGangOfAWholeNodeStartsAmongAStreamOfSmallJobs) {
  for (const char* policy : {"gavel", "las:preemption=rounds,full_interval=360 s"}) {
    TestCluster cluster(nodes(2));
    std::vector<JobId> small;
    const auto come = [&](int count) {
      for (int i = 0; i < count; ++i) small.push_back(cluster.submit(saving(cluster, 1)));
    };
    come(20);
    round(cluster, policy);
    cluster.wait(Duration::minutes(1));
    const JobId gang = cluster.submit(saving(cluster, 8));
    int minutes = 0;
    for (; minutes < 90 && !cluster.runs(gang); ++minutes) {
      come(1);
      for (RunningJob& job : cluster.running()) job.attained += 60;
      // A job that has run for a while ends; another one starts on its device.
      for (const JobId id : small) {
        const RunningJob* job = cluster.find(id);
        if (job == nullptr || cluster.now() - job->started < Duration::minutes(5)) continue;
        cluster.finish(id);
        break;
      }
      cluster.pass(policy);
      cluster.wait(Duration::minutes(1));
      if (minutes % 6 == 5) round(cluster, policy);
    }
    EXPECT_LE(minutes, 48) << policy;
  }
}

TEST(PassRounds, JobsInTheWayOfAGangGoToOtherNodes) {
  TestCluster cluster(nodes(2));
  std::vector<JobId> small;
  small.reserve(16);
  for (int i = 0; i < 16; ++i) small.push_back(cluster.submit(saving(cluster, 1)));
  round(cluster);
  // One job is left on each node, so that no node is free for the gang.
  std::array<JobId, 2> left;
  for (const JobId id : small) {
    const NodeId node = cluster.find(id)->gangs[0].allocation.ranks[0].node;
    JobId& last = left[node.value()];
    if (last.valid()) cluster.finish(last);
    last = id;
  }
  cluster.wait(Duration::minutes(6));
  const JobId gang = cluster.submit(saving(cluster, 8));
  round(cluster);
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(gang));
  EXPECT_TRUE(cluster.runs(left[0]) && cluster.runs(left[1]));
}

TEST(PassRounds, AJobThatHasNoRoomOnAnyHostHoldsNobodyBack) {
  TestCluster cluster(nodes(1));
  JobRequest hungry = saving(cluster, 8);
  const std::uint32_t memory = cluster.fleet().topology().group(NodeId(0)).host.memory;
  hungry.roles[0].options[0].gang.host.memory = memory / 8 + 1;
  const JobId never = cluster.submit(hungry);
  std::vector<JobId> others;
  others.reserve(2);
  for (int i = 0; i < 2; ++i) others.push_back(cluster.submit(saving(cluster, 4)));
  round(cluster);
  EXPECT_FALSE(cluster.runs(never));
  EXPECT_TRUE(cluster.runs(others[0]) && cluster.runs(others[1]));
}

TEST(PassRounds, AnExclusiveGangCountsAsAllOfItsNodes) {
  TestCluster cluster(nodes(2));
  std::vector<JobId> jobs;
  for (int i = 0; i < 3; ++i) {
    JobRequest job = saving(cluster, 2);
    job.roles[0].options[0].gang.exclusive = TopologyLevel::kNode;
    jobs.push_back(cluster.submit(job));
  }
  std::array<int, 3> ran{};
  for (int i = 0; i < 30; ++i) {
    round(cluster);
    for (std::size_t j = 0; j < jobs.size(); ++j) ran[j] += cluster.runs(jobs[j]) ? 1 : 0;
    cluster.wait(Duration::minutes(6));
  }
  for (const int rounds : ran) EXPECT_NEAR(rounds, 20, 2);
}

TEST(PassRounds, DevicesOfJobsThatMayNotBeStoppedAreNobodysTurn) {
  TestCluster cluster(two_types());
  const JobId stays = cluster.submit(cluster.job(8));  // on H100, without checkpoints
  cluster.pass("gavel");
  const JobId other = cluster.submit(on_either(cluster, 8, 0.5));
  for (int i = 0; i < 10; ++i) {
    round(cluster);
    EXPECT_EQ(option_of(cluster, other), 1u) << "round " << i;
    cluster.wait(Duration::minutes(6));
  }
  EXPECT_TRUE(cluster.runs(stays));
}

TEST(PassRounds, ServicesAndJobsOfSeveralGangsGetDevicesOfOthers) {
  for (const bool serves : {true, false}) {
    TestCluster cluster(nodes(2));
    for (int i = 0; i < 4; ++i) cluster.submit(saving(cluster, 8));
    round(cluster);
    cluster.wait(Duration::minutes(6));
    JobRequest first = saving(cluster, 8);
    if (serves) first.kind = JobKind::kServe;
    if (!serves) first.roles[0].gangs = 2;
    const JobId id = cluster.submit(first);
    round(cluster);
    EXPECT_TRUE(cluster.runs(id));
  }
}

TEST(PassRounds, ARoundLooksAtABoundedNumberOfJobs) {
  TestCluster cluster(nodes(2));
  for (int i = 0; i < 20'000; ++i) {
    JobRequest job = saving(cluster, 8);
    job.roles[0].options[0].speed = 1 + i * 1e-6;
    cluster.submit(job);
  }
  const PassResult result = cluster.pass("sia", PassKind::kFull);
  EXPECT_EQ(cluster.running().size(), 2u);
  EXPECT_LE(result.placements, kRoundJobs);
  EXPECT_EQ(result.waiting.size(), 19'998u);
}

TEST(PassRounds, TheProgramIsOfABoundedNumberOfClasses) {
  TestCluster cluster(two_types());
  for (int i = 0; i < 2000; ++i) {
    cluster.submit(on_either(cluster, 8, 0.1 + i * 4e-4));
  }
  const PassResult result = cluster.pass("gavel", PassKind::kFull);
  EXPECT_EQ(cluster.running().size(), 2u);
  EXPECT_EQ(result.waiting.size(), 1998u);
}

TEST(PassRounds, BetweenRoundsTheJobThatHadLeastTimeIsFirst) {
  TestCluster cluster(nodes(1));
  const JobId first = cluster.submit(saving(cluster, 8));
  cluster.pass("gavel");
  ASSERT_TRUE(cluster.runs(first));
  cluster.running()[0].attained = 8 * 1800;
  cluster.wait(Duration::minutes(30));
  cluster.stop(first);
  const JobId later = cluster.submit(saving(cluster, 8));
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(later));
}

TEST(PassRounds, AJobWhoseCheckpointDoesNotFitTheGraceRunsUntilItHasWrittenOne) {
  TestCluster cluster(nodes(1));
  JobRequest large = saving(cluster, 8);
  large.checkpoint_interval = Duration::minutes(30);
  large.checkpoint_cost = Duration::minutes(2);
  const JobId first = cluster.submit(large);
  cluster.pass("gavel");
  cluster.submit(saving(cluster, 8));
  cluster.wait(Duration::minutes(20));
  cluster.pass("gavel", PassKind::kFull);
  EXPECT_TRUE(cluster.runs(first));
  cluster.wait(Duration::minutes(11));
  cluster.pass("gavel", PassKind::kFull);
  EXPECT_FALSE(cluster.runs(first));
}

TEST(PassRounds, NobodyComesToANodeThatClosesTooSoon) {
  TestCluster cluster(nodes(2));
  cluster.close(NodeId(0), Duration::hours(5));
  const JobId is_long = cluster.submit(saving(cluster, 8));
  const JobId next = cluster.submit(saving(cluster, 8));
  for (int i = 0; i < 4; ++i) {
    round(cluster);
    ASSERT_EQ(cluster.running().size(), 1u);
    EXPECT_EQ(cluster.running()[0].gangs[0].allocation.ranks[0].node, NodeId(1));
    cluster.wait(Duration::minutes(6));
  }
  JobRequest brief = saving(cluster, 8);
  brief.estimate = Duration::hours(1);
  const JobId short_one = cluster.submit(brief);
  cluster.pass("gavel");
  EXPECT_TRUE(cluster.runs(short_one));
  EXPECT_NE(cluster.runs(is_long), cluster.runs(next));
}

TEST(PassRounds, PoliciesThatHoldQuotasTakeNoTurns) {
  const Result<Policy> held = policy_named("gavel:quotas=held");
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().message, "quotas: expected ignored, with preemption: rounds");
  EXPECT_FALSE(policy_named("capacity:preemption=rounds"));
  EXPECT_TRUE(policy_named("capacity:preemption=rounds,quotas=ignored"));
  EXPECT_FALSE(policy_named("sia:full_interval=0 s"));
  EXPECT_EQ(policy_named("hardware-aware:full_interval=1 ms").error().message,
            "full_interval: expected 0 s or at least 1 s");
  EXPECT_TRUE(policy_named("hardware-aware:full_interval=1 s"));
  EXPECT_FALSE(policy_named("elasticflow:quotas=held"));
}

}  // namespace
}  // namespace orrery

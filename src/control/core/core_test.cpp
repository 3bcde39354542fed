#include "control/core/core.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

Duration seconds(std::int64_t n) { return Duration::seconds(n); }

// --- Jobs ---------------------------------------------------------------------------------------

TEST(CoreJobs, GoFromTheQueueToTheirEnd) {
  ScriptedCluster cluster;
  const JobId id = cluster.submit(cluster.job(16));
  EXPECT_EQ(cluster.phase(id), JobPhase::kQueued);
  cluster.wait(seconds(0));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.nodes(id).size(), 2u);
  cluster.wait(seconds(10));
  cluster.up(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.wait(seconds(100));
  cluster.end(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFinished);
  EXPECT_EQ(cluster.job(id).done, 1);
  const JobUsage& usage = cluster.job(id).usage;
  EXPECT_TRUE(usage.devices.total() == DeviceTime{16} * seconds(110).count_ns());
  EXPECT_TRUE(usage.idle == DeviceTime{16} * seconds(10).count_ns());
  EXPECT_EQ(cluster.state().ended_jobs(), 1u);
}

// A node of 8 with 2 free, or three with 3 free each: the job at the head of the queue wants a
// whole node, and the next one only 2.
TEST(CoreJobs, DevicesThatTheHeadOfTheQueueKeepsFromOthersAreIdleForTheOrder) {
  for (const std::uint32_t nodes : {1U, 3U}) {
    const std::string fleet = fmt::format(
        "apiVersion: orrery/v1\nkind: Fleet\nname: lab\nsites:\n- name: lab\n  halls:\n"
        "  - pods: [{{racks: [{{cooling: in-row-or-dense-air, nodes: [{{type: dgx-h100, count: "
        "{}}}]}}]}}]\n",
        nodes);
    ScriptedCluster cluster({.fleet = fleet, .policy = "fifo"});
    const auto cause = [&] { return cluster.state().idle_cause(FleetTypeId(0)); };
    for (std::uint32_t n = 0; n < nodes; ++n) cluster.run(cluster.job(nodes == 1 ? 6 : 5));
    cluster.submit(cluster.job(8));
    cluster.wait(seconds(0));
    EXPECT_EQ(cause(), nodes == 1 ? DeviceUse::kTooFew : DeviceUse::kFragmented);
    const JobId small = cluster.submit(cluster.job(2));
    cluster.wait(seconds(0));
    EXPECT_EQ(cluster.phase(small), JobPhase::kQueued);
    EXPECT_EQ(cause(), DeviceUse::kOrder) << nodes;
  }
}

TEST(CoreJobs, KeepDevicesUntilTheirRanksAreGone) {
  ScriptedCluster cluster;
  const JobId first = cluster.run(cluster.job(32));
  const JobId second = cluster.submit(cluster.job(8));
  cluster.send(RanksEnded{first, 1, ExitKind::kDone, {}, {.done = 1}, false});
  cluster.tick();
  EXPECT_EQ(cluster.phase(first), JobPhase::kStopping);
  EXPECT_EQ(cluster.phase(second), JobPhase::kQueued);
  const NodeId free = cluster.nodes(first).at(1);
  cluster.gone(first, {free});
  cluster.tick();
  EXPECT_EQ(cluster.phase(first), JobPhase::kStopping);
  EXPECT_EQ(cluster.nodes(second), std::vector{free});
  cluster.wait(seconds(3));
  cluster.gone(first);
  EXPECT_EQ(cluster.phase(first), JobPhase::kFinished);
}

TEST(CoreJobs, OfAProgramThatFailsAreStartedAgainLaterEachTimeAndThenNoMore) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.restart_max = 2;
  const JobId id = cluster.submit(submission);
  for (std::uint32_t fault = 1; fault <= 2; ++fault) {
    cluster.tick();
    ASSERT_EQ(cluster.phase(id), JobPhase::kStarting);
    EXPECT_EQ(cluster.job(id).attempt, fault);
    cluster.up(id);
    cluster.wait(seconds(60));
    cluster.end(id, ExitKind::kProgram);
    EXPECT_EQ(cluster.phase(id), JobPhase::kHeld);
    const Duration backoff = seconds(fault == 1 ? 10 : 20);
    EXPECT_EQ(cluster.job(id).not_before, cluster.now() + backoff);
    cluster.wait(backoff - Duration::nanoseconds(1));
    EXPECT_EQ(cluster.phase(id), JobPhase::kHeld);
    cluster.wait(Duration::nanoseconds(1));
  }
  cluster.up(id);
  cluster.end(id, ExitKind::kProgram);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFailed);
  EXPECT_EQ(cluster.job(id).usage.program_faults, 3u);
  EXPECT_EQ(cluster.job(id).blame.layer, FaultLayer::kProgram);
}

/// Two nodes: one reports what was lost when it stopped; the other falls silent before it is gone.
TEST(CoreJobs, LoseWhatThoseSaidWhoSpokeBeforeTheOthersFellSilent) {
  for (const RestartPolicy restart : {RestartPolicy::kAtOnce, RestartPolicy::kWhenSafe}) {
    ScriptedCluster cluster;
    Submission submission = cluster.job(16);
    submission.restart = restart;
    const JobId id = cluster.run(submission);
    const std::vector<NodeId> nodes = cluster.nodes(id);
    cluster.wait(Duration::hours(1));
    cluster.decide({PreemptJob{id, JobId()}});
    const Progress told{.done = 0.75, .lost = Duration::minutes(15)};
    cluster.send(RanksGone{id, 1, {nodes[0]}, told});
    ASSERT_EQ(cluster.phase(id), JobPhase::kStopping);
    cluster.send(NodeHeard{nodes[1], NodeHealth::kLost, 5});
    if (restart == RestartPolicy::kWhenSafe) {
      ASSERT_EQ(cluster.phase(id), JobPhase::kStopping) << "its ranks may still run";
      cluster.send(FenceNode{nodes[1]});
    }
    EXPECT_EQ(cluster.phase(id), JobPhase::kQueued);
    EXPECT_EQ(cluster.job(id).done, 0.75);
    EXPECT_EQ(device_hours(cluster.job(id).usage.lost), 4);
  }
}

TEST(CoreJobs, AreCancelledInEveryPhase) {
  ScriptedCluster cluster;
  Submission later = cluster.job(8);
  const JobId running = cluster.run(cluster.job(8));
  later.after = {running};
  const JobId held = cluster.submit(later);
  const JobId starting = cluster.start(cluster.job(8));
  const JobId preempted = cluster.run(cluster.job(8));
  cluster.decide({PreemptJob{preempted, starting}});
  const JobId queued = cluster.submit(cluster.job(32));
  for (const JobId id : {held, queued}) {
    cluster.send(CancelJob{id});
    EXPECT_EQ(cluster.phase(id), JobPhase::kCancelled);
  }
  for (const JobId id : {starting, running, preempted}) {
    cluster.send(CancelJob{id});
    EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
    cluster.send(CancelJob{id});
    cluster.wait(seconds(5));
    cluster.gone(id);
    EXPECT_EQ(cluster.phase(id), JobPhase::kCancelled);
    cluster.send(CancelJob{id});
    EXPECT_EQ(cluster.count<JobEnded>(), 0u);
  }
  EXPECT_FALSE(cluster.send(CancelJob{JobId(99)}).answer.status);
}

TEST(CoreJobs, ThatArePreemptedWaitAgainAndGoOnFromTheirCheckpoint) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(32));
  cluster.wait(Duration::minutes(30));
  cluster.decide({PreemptJob{id, JobId()}});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  EXPECT_EQ(cluster.job(id).stop, StopReason::kPower);
  cluster.decide({PreemptJob{id, JobId()}});
  EXPECT_EQ(cluster.count<JobStopping>(), 0u);
  const Progress progress{.done = 0.25, .lost = Duration::minutes(15)};
  cluster.send(RanksGone{id, 1, {}, progress});
  EXPECT_EQ(cluster.phase(id), JobPhase::kQueued);
  EXPECT_EQ(cluster.state().waiting()[0].done, 0.25);
  EXPECT_TRUE(cluster.job(id).usage.lost == DeviceTime{32} * Duration::minutes(15).count_ns());
  cluster.tick();
  EXPECT_EQ(cluster.job(id).attempt, 2u);
  cluster.send(RanksUp{id, 1, 0});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  cluster.up(id);
  cluster.end(id);
}

TEST(CoreJobs, ThatGoOnAsAnotherEpochSettleWhatBecameOfTheirWork) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  cluster.wait(Duration::minutes(30));
  const Progress progress{
      .done = 0.25, .lost = Duration::minutes(10), .undetected = Duration::minutes(5)};
  cluster.send(WorkReported{id, 1, progress});
  EXPECT_EQ(cluster.count<WorkSettled>(), 0u) << "no epoch has begun";
  cluster.send(NodeHeard{cluster.nodes(id)[0], NodeHealth::kLost, 5});
  const Instant expected = cluster.state().running(id).expected_end;
  cluster.send(WorkReported{id, 2, progress});
  EXPECT_EQ(cluster.count<WorkSettled>(), 0u) << "of no attempt there is";
  cluster.send(WorkReported{id, 1, progress});
  EXPECT_EQ(cluster.count<WorkSettled>(), 1u);
  const auto sum = [&](DeviceUse use) {
    return cluster.state().ledger().sum(FleetTypeId(0), use, cluster.now());
  };
  EXPECT_TRUE(sum(DeviceUse::kLost) == DeviceTime{16} * Duration::minutes(10).count_ns());
  EXPECT_TRUE(sum(DeviceUse::kUndetected) == DeviceTime{16} * Duration::minutes(5).count_ns());
  EXPECT_TRUE(cluster.job(id).usage.lost == sum(DeviceUse::kLost));
  EXPECT_EQ(cluster.state().running(id).done, 0.25);
  EXPECT_EQ(cluster.state().running(id).expected_end, expected + Duration::minutes(15));
  cluster.up(id);
  cluster.wait(Duration::minutes(1));
  cluster.end(id);
}

TEST(CoreJobs, BeyondTheirTimeLimitFail) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.request.time_limit = Duration::minutes(10);
  const JobId id = cluster.run(submission);
  cluster.wait(Duration::minutes(10) - Duration::nanoseconds(1));
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.wait(Duration::nanoseconds(1));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.gone(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFailed);
  EXPECT_EQ(cluster.job(id).blame.evidence, "time limit");
}

TEST(CoreJobs, StartWhenThoseBeforeThemHaveFinished) {
  ScriptedCluster cluster;
  const JobId a = cluster.run(cluster.job(8));
  const JobId b = cluster.run(cluster.job(8));
  Submission last = cluster.job(8);
  last.after = {a, b};
  const JobId c = cluster.submit(last);
  EXPECT_EQ(cluster.phase(c), JobPhase::kHeld);
  cluster.end(a);
  EXPECT_EQ(cluster.phase(c), JobPhase::kHeld);
  cluster.end(b);
  EXPECT_EQ(cluster.phase(c), JobPhase::kQueued);
  last.after = {a};
  EXPECT_EQ(cluster.phase(cluster.submit(last)), JobPhase::kQueued);
}

TEST(CoreJobs, EndWithThoseTheyWaitFor) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.restart = RestartPolicy::kNever;
  const JobId a = cluster.run(submission);
  submission.after = {a};
  const JobId b = cluster.submit(submission);
  submission.after = {b, a};
  const JobId c = cluster.submit(submission);
  cluster.end(a, ExitKind::kProgram);
  EXPECT_EQ(cluster.phase(a), JobPhase::kFailed);
  EXPECT_EQ(cluster.phase(b), JobPhase::kCancelled);
  EXPECT_EQ(cluster.phase(c), JobPhase::kCancelled);
  EXPECT_EQ(cluster.job(b).blame.evidence, "it waited for job 0 (job), which has failed");
  const Outcome& refused = cluster.send(SubmitJob{submission});
  ASSERT_FALSE(refused.answer.status);
  EXPECT_EQ(refused.answer.status.error().message, "job \"job\" to wait for has been cancelled");
  submission.after = {JobId(77)};
  EXPECT_FALSE(cluster.send(SubmitJob{submission}).answer.status);
}

TEST(CoreJobs, OfAnArrayRunSoManyAtATime) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.request.array = ArrayId(0);
  submission.parallel = 2;
  submission.restart_max = 1;
  std::vector<JobId> ids;
  ids.reserve(4);
  for (int i = 0; i < 4; ++i) ids.push_back(cluster.submit(submission));
  cluster.tick();
  EXPECT_EQ(cluster.state().active(ArrayId(0)), 2u);
  EXPECT_EQ(cluster.state().held_of(ArrayId(0)), (std::vector{ids[2], ids[3]}));
  cluster.up(ids[0]);
  cluster.end(ids[0], ExitKind::kProgram);  // another job takes its place while it backs off
  EXPECT_EQ(cluster.phase(ids[0]), JobPhase::kHeld);
  EXPECT_EQ(cluster.phase(ids[2]), JobPhase::kQueued);
  cluster.wait(seconds(60));
  EXPECT_EQ(cluster.phase(ids[0]), JobPhase::kHeld);
  cluster.up(ids[1]);
  cluster.end(ids[1]);
  EXPECT_EQ(cluster.phase(ids[0]), JobPhase::kQueued);
  EXPECT_EQ(cluster.phase(ids[3]), JobPhase::kHeld);
  cluster.send(CancelJob{ids[0]});
  EXPECT_EQ(cluster.phase(ids[3]), JobPhase::kQueued);
}

// --- Commands -----------------------------------------------------------------------------------

TEST(CoreCommands, ThatAreSentTwiceAreCarriedOutOnce) {
  ScriptedOptions options;
  options.timing.remember_requests = Duration::hours(1);
  ScriptedCluster cluster(options);
  const JobId id = cluster.submit(cluster.job(8), "a");
  EXPECT_EQ(cluster.submit(cluster.job(8), "a"), id);
  EXPECT_EQ(cluster.state().jobs(), 1u);
  EXPECT_NE(cluster.submit(cluster.job(8), "b"), id);
  cluster.wait(Duration::hours(2));
  (void)cluster.submit(cluster.job(8), "c");  // drops the old requests
  EXPECT_EQ(cluster.state().answered("a"), std::nullopt);
  EXPECT_NE(cluster.submit(cluster.job(8), "a"), id);
}

/// Runs a job with a spec, whose attempts are kept.
JobId run_replica(ScriptedCluster& cluster, const Submission& service) {
  const JobId id = cluster.send(SubmitJob{service, "spec", "", ""}).answer.job;
  cluster.tick();
  cluster.up(id);
  return id;
}

TEST(CoreReplicas, ReportHowFarTheyAreAndNeverGoBack) {
  ScriptedCluster cluster;
  Submission service = cluster.job(8);
  service.request.kind = JobKind::kServe;
  const JobId id = run_replica(cluster, service);
  const auto report = [&](ReplicaPhase phase, std::uint32_t attempt = 1) {
    return cluster.send(ReplicaSeen{id, attempt, {phase, "10.0.0.1:80", 7, 8, {}}});
  };
  report(ReplicaPhase::kLoading);
  EXPECT_EQ(cluster.count<ReplicaChanged>(), 1u);
  const Instant loading = cluster.now();
  cluster.wait(Duration::seconds(20));
  report(ReplicaPhase::kReady);
  EXPECT_EQ(cluster.count<ReplicaChanged>(), 1u);
  EXPECT_TRUE(cluster.actions().empty());
  report(ReplicaPhase::kReady);
  report(ReplicaPhase::kLoading);
  EXPECT_EQ(cluster.count<ReplicaChanged>(), 0u) << "repeated, or late";
  const ReplicaState* replica = replica_of(cluster.job(id));
  ASSERT_NE(replica, nullptr);
  EXPECT_EQ(replica->report.phase, ReplicaPhase::kReady);
  EXPECT_EQ(replica->reached[static_cast<std::size_t>(ReplicaPhase::kLoading)], loading);
  EXPECT_EQ(replica->reached[static_cast<std::size_t>(ReplicaPhase::kReady)], cluster.now());
  cluster.decide({PreemptJob{id, JobId()}});
  cluster.send(RanksGone{id, 1, {}, std::nullopt});
  cluster.tick();
  EXPECT_EQ(replica_of(cluster.job(id)), nullptr) << "of the next attempt nothing is known";
  EXPECT_TRUE(cluster.send(ReplicaSeen{id, 1, {}}).events.empty()) << "of an earlier attempt";
}

TEST(CoreReplicas, ThatEndByThemselvesAreStartedAgain) {
  ScriptedCluster cluster;
  Submission service = cluster.job(8);
  service.request.kind = JobKind::kServe;
  service.restart_max = 1;
  const JobId id = run_replica(cluster, service);
  cluster.send(ReplicaSeen{id, 1, {.phase = ReplicaPhase::kReady}});
  cluster.end(id, ExitKind::kDone);
  EXPECT_EQ(cluster.job(id).stop, StopReason::kProgram);
  EXPECT_FALSE(ended(cluster.phase(id)));
  cluster.wait(Duration::minutes(1));
  EXPECT_EQ(cluster.job(id).attempt, 2u);
}

// Reports of executors may be late, repeated, or wrong.
TEST(CoreObservations, WhatCannotBeIsRefusedWithAWordAndNothingComesOfIt) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId elsewhere = NodeId(3);
  ASSERT_NE(cluster.nodes(id)[0], elsewhere);
  const std::vector<InputKind> lies{RanksUp{id, 1, 0},
                                    RanksUp{id, 2, 0},
                                    RanksEnded{id, 2, ExitKind::kDone, {}, {1, {}, {}, {}}, true},
                                    RanksEnded{id, 0, ExitKind::kProgram},
                                    RanksEnded{JobId(7), 1, ExitKind::kDone, {}, {}, true},
                                    RanksGone{id, 1, {elsewhere}, Progress{.done = 1}},
                                    RanksGone{id, 2, {}, std::nullopt},
                                    WorkReported{id, 1, {}},
                                    ReplicaSeen{id, 1, {}},
                                    ReplicaSeen{id, 2, {}},
                                    NodeHeard{NodeId(4), NodeHealth::kLost, 5},
                                    NodeFault{NodeId(4), FaultLayer::kHost, "", true, true}};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    const Outcome& outcome = cluster.send(lies[i]);
    EXPECT_FALSE(outcome.answer.status) << i;
    EXPECT_TRUE(outcome.events.empty() && outcome.actions.empty()) << i;
  }
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
}

TEST(CoreObservations, ProgressThatCannotBeIsNotTakenOver) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const auto fail = [&](const Progress& told) {
    const bool believed =
        cluster.send(RanksEnded{id, cluster.job(id).attempt, ExitKind::kInfra, {}, told, true})
            .answer.status.has_value();
    cluster.wait(Duration::seconds(1));
    cluster.up(id);
    return believed;
  };
  EXPECT_TRUE(fail({.done = 0.5}));
  for (const double done : {0.25, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(fail({.done = done})) << done;
    EXPECT_EQ(cluster.job(id).done, 0.5);
  }
  EXPECT_FALSE(fail({.done = 0.75, .lost = Duration::seconds(-1)}));
  EXPECT_EQ(cluster.job(id).done, 0.5);
  EXPECT_TRUE(fail({.done = 0.25, .lost = Duration::minutes(1)})) << "it was found to be wrong";
  EXPECT_EQ(cluster.job(id).done, 0.25);
}

TEST(CoreCommands, SetTenantsWhileJobsRun) {
  ScriptedOptions options;
  options.tenants = "- {name: default}\n- {name: b}\n";
  ScriptedCluster cluster(options);
  const JobId id = cluster.run(cluster.job(8));
  const JobId queued = cluster.submit(cluster.job(32));
  cluster.wait(Duration::hours(1));
  cluster.decide({});
  const std::string head = "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n";
  EXPECT_FALSE(cluster.send(SetTenants{head + "- {name: b}\n"}).answer.status);
  EXPECT_FALSE(cluster.send(SetTenants{head + "- {nane: b}\n"}).answer.status);
  EXPECT_EQ(cluster.state().tenants().size(), 3u);
  ASSERT_TRUE(cluster.send(SetTenants{head + "- {name: a}\n- {name: b}\n- {name: default}\n"})
                  .answer.status);
  EXPECT_EQ(cluster.state().tenants().path(cluster.job(id).tenant), "default");
  EXPECT_EQ(cluster.job(queued).tenant, cluster.job(id).tenant);
  cluster.end(id);
  cluster.tick();
  EXPECT_EQ(cluster.phase(queued), JobPhase::kStarting);
}

// The full pass decided before the guarantee existed.
TEST(CoreCommands, WhatIsGuaranteedByNowIsNotTakenAnyMore) {
  const std::string head = "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n";
  ScriptedOptions options;
  options.tenants = "- {name: default}\n- {name: b}\n";
  options.policy = "capacity:min_run=0 s";
  ScriptedCluster cluster(options);
  const JobId first = cluster.run(cluster.job(16));
  const JobId second = cluster.run(cluster.elastic_job(8, 16));
  Submission claimant = cluster.job(8);
  claimant.request.tenant = *cluster.state().tenants().find("b");
  const JobId other = cluster.submit(claimant);
  cluster.send(SetTenants{head + "- {name: default, guarantee: {h100: 28}}\n- {name: b}\n"});
  ResizeJob half{.job = second,
                 .gangs = cluster.state().running(second).gangs,
                 .terms = cluster.state().running(second).terms,
                 .in_favour_of = other};
  half.gangs.front().option = 1;
  half.gangs.front().allocation.ranks.pop_back();
  cluster.decide({PreemptJob{first, other, 0}, half});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 2U);
  EXPECT_EQ(cluster.count<JobStopping>() + cluster.count<JobResized>(), 0U);
  cluster.send(SetTenants{head + "- {name: default, guarantee: {h100: 24}}\n- {name: b}\n"});
  cluster.decide({half, PreemptJob{first, other, 0}});
  EXPECT_EQ(cluster.count<JobResized>(), 1U);
  EXPECT_EQ(cluster.count<JobStopping>(), 0U) << "what is left is guaranteed";
}

TEST(CoreCommands, SetPolicyAndPowerCaps) {
  ScriptedOptions options;
  options.power = PowerLimits::kAsBuilt;
  ScriptedCluster cluster(options);
  EXPECT_FALSE(cluster.send(SetPolicy{"kind: Polity\n"}).answer.status);
  ASSERT_TRUE(
      cluster.send(SetPolicy{"apiVersion: orrery/v1\nkind: Policy\nname: srtf\n"}).answer.status);
  EXPECT_EQ(cluster.state().policy().name, "srtf");
  EXPECT_FALSE(cluster.send(SetPowerCap{PowerDomainId(999), Watts(1)}).answer.status);
  ASSERT_TRUE(cluster.send(SetPowerCap{PowerDomainId(0), Watts(12'345)}).answer.status);
  const Situation s = cluster.state().situation(cluster.now());
  EXPECT_EQ(s.caps->limit(PowerDomainId(0)), Watts(12'345));
  cluster.send(SupplyObserved{PowerDomainId(0), Watts(10'000)});
  EXPECT_EQ(s.caps->limit(PowerDomainId(0)), Watts(10'000));
}

TEST(CoreClocks, RiseOnlyWhereTheDrawStillFitsAndTheGangStillRunsAsItDid) {
  ScriptedOptions options;
  options.power = PowerLimits::kAsBuilt;
  ScriptedCluster cluster(options);
  const JobId id = cluster.run(cluster.job(8));
  const auto clock = [&](double share, Watts draw) {
    SetClock set{id, 0, cluster.state().running(id).terms.front()};
    set.terms.clock = share;
    set.terms.draw = draw;
    return set;
  };
  cluster.decide({clock(0.7, Watts(700))});
  EXPECT_EQ(cluster.count<ClockSet>(), 1U);
  // Two idle nodes of 2 kW, and 8 x (700 - 250) W; 950 W each would be 5.6 kW more than idle.
  ASSERT_TRUE(cluster.send(SetPowerCap{PowerDomainId(0), Watts(9e3)}).answer.status);
  cluster.decide({clock(1, Watts(950))});
  EXPECT_EQ(cluster.count<ClockSet>(), 0U);
  cluster.decide({clock(0.8, Watts(800))});
  EXPECT_EQ(cluster.count<ClockSet>(), 1U);
  SetClock stale = clock(0.5, Watts(500));
  stale.terms.ratio = 2;
  cluster.decide({stale});
  EXPECT_EQ(cluster.count<ClockSet>(), 0U);
  EXPECT_EQ(cluster.state().running(id).terms.front().clock, 0.8);
}

TEST(CoreClocks, AFullPassSetsNoClockOfAnAttemptThatStartedAfterItLooked) {
  ScriptedOptions options;
  options.policy = "hardware-aware";
  options.power = PowerLimits::kAsBuilt;
  ScriptedCluster cluster(options);
  const JobId before = cluster.run(cluster.job(8));
  cluster.submit(cluster.job(32));  // waits, so that a full pass runs
  cluster.tick();
  cluster.wait(Duration::minutes(1));
  Submission brief = cluster.job(8);
  brief.request.estimate = Duration::minutes(10);
  const JobId after = cluster.run(brief);
  const auto lowered = [&](JobId id) {
    SetClock set{id, 0, cluster.state().running(id).terms.front()};
    set.terms.clock = 0.7;
    set.terms.draw = set.terms.draw * 0.7;
    return set;
  };
  cluster.decide({lowered(before), lowered(after)});
  EXPECT_EQ(cluster.state().running(before).terms.front().clock, 0.7);
  EXPECT_EQ(cluster.state().running(after).terms.front().clock, 1);
}

TEST(CoreStarts, AreLaterByTheirDelayOnce) {
  ScriptedCluster cluster;
  const JobId model = cluster.run(cluster.job(8));
  const JobId id = cluster.submit(cluster.job(8));
  StartJob start{.job = id,
                 .gangs = cluster.state().running(model).gangs,
                 .terms = cluster.state().running(model).terms,
                 .expected = Duration::hours(1),
                 .delay = Duration::minutes(7)};
  start.gangs.front().allocation.ranks = {{NodeId(3), 0xff}};
  const Instant begin = cluster.now();
  cluster.decide({start});
  EXPECT_EQ(cluster.state().running(id).started, begin + Duration::minutes(7));
  EXPECT_EQ(cluster.state().running(id).expected_end, begin + Duration::minutes(67));
  cluster.wait(Duration::minutes(8));
  cluster.up(id);
  EXPECT_EQ(cluster.state().running(id).expected_end, cluster.now() + Duration::hours(1));
}

TEST(CoreUsage, OfThePastIsRememberedAndFades) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(16));
  const TenantId tenant = cluster.job(id).tenant;
  const Duration half = cluster.state().tenants().half_life();
  cluster.wait(half);
  cluster.end(id);
  const auto recent = [&] {
    return cluster.state().situation(cluster.now()).usage->recent(tenant, kAllTypes);
  };
  EXPECT_NEAR(recent(), 8, 1e-9);
  cluster.wait(half);
  (void)cluster.submit(cluster.job(8));  // a job enters the queue, so usage is advanced
  EXPECT_NEAR(recent(), 4, 1e-9);
}

TEST(Core, AJobKeepsWhoSubmittedItAndAsWhomItRunsToItsEnd) {
  ScriptedCluster cluster;
  cluster.send(SubmitJob{cluster.job(8), "spec", "ada", "ada-l"});
  const JobId id(0);
  EXPECT_EQ(cluster.job(id).submitter, "ada");
  cluster.tick();
  cluster.up(id);
  cluster.end(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFinished);
  EXPECT_EQ(cluster.job(id).submitter, "ada");
  EXPECT_EQ(cluster.job(id).run_as, "ada-l");
}

TEST(Core, AJobThatANodeRefusesFailsAtOnceAndNoNodeIsBlamed) {
  ScriptedCluster cluster;
  const JobId id = cluster.start(cluster.job(16));
  const std::vector<NodeId> nodes = cluster.nodes(id);
  ASSERT_EQ(nodes.size(), 2U);
  const Blame why{.evidence = "node-0 refused it: no user \"ada\" on this node"};
  cluster.send(RanksEnded{id, 1, ExitKind::kRefused, why, {}, false});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping) << "the other node's ranks may live";
  cluster.gone(id, nodes);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFailed);
  EXPECT_EQ(cluster.job(id).attempt, 1U);
  EXPECT_EQ(cluster.job(id).blame.evidence, why.evidence);
  EXPECT_EQ(cluster.job(id).usage.faults + cluster.job(id).usage.program_faults, 0U);
  for (const NodeId node : nodes) EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
}

}  // namespace
}  // namespace orrery

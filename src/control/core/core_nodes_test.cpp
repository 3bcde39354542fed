#include <gtest/gtest.h>

#include <algorithm>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

Duration seconds(std::int64_t n) { return Duration::seconds(n); }

NodeHeard lost(NodeId node) { return {node, NodeHealth::kLost, 5}; }

template <class Type>
bool asked(const ScriptedCluster& cluster) {
  return std::any_of(cluster.actions().begin(), cluster.actions().end(),
                     [](const Action& action) { return std::holds_alternative<Type>(action); });
}

TEST(CoreNodes, AreDrainedWhenTheirWorkEndsOrAtOnce) {
  ScriptedCluster cluster;
  const JobId slow = cluster.run(cluster.job(8));
  const JobId quick = cluster.run(cluster.job(8));
  const NodeId a = cluster.nodes(slow).front();
  const NodeId b = cluster.nodes(quick).front();
  cluster.send(DrainNode{a, false, "disk"});
  EXPECT_EQ(cluster.phase(slow), JobPhase::kRunning);
  cluster.send(DrainNode{b, true, "disk"});
  EXPECT_EQ(cluster.job(quick).stop, StopReason::kDrained);
  cluster.gone(quick);
  EXPECT_EQ(cluster.health(b), NodeHealth::kDrained);
  cluster.tick();
  EXPECT_EQ(cluster.phase(quick), JobPhase::kStarting);
  EXPECT_EQ(cluster.health(a), NodeHealth::kDraining);
  cluster.end(slow);
  EXPECT_EQ(cluster.health(a), NodeHealth::kDrained);
  const JobId large = cluster.submit(cluster.job(24));
  cluster.tick();
  EXPECT_EQ(cluster.phase(large), JobPhase::kQueued);
  cluster.send(ResumeNode{a});
  cluster.send(ResumeNode{b});
  cluster.tick();
  EXPECT_EQ(cluster.phase(large), JobPhase::kStarting);
}

TEST(CoreNodes, ThatAreDrainingAreEmptiedAtOnceWhenThatIsAskedLater) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  cluster.send(DrainNode{node, false, "disk"});
  ASSERT_EQ(cluster.phase(id), JobPhase::kRunning);
  EXPECT_TRUE(cluster.send(DrainNode{node, true, ""}).answer.status);
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  EXPECT_EQ(cluster.job(id).stop, StopReason::kDrained);
  // A repeated drain, either way, changes nothing.
  cluster.send(DrainNode{node, true, ""});
  EXPECT_EQ(cluster.count<JobStopping>(), 0u);
  cluster.send(DrainNode{node, false, ""});
  EXPECT_TRUE(cluster.log().back().what.index() == Event(JobStopping{}).index());
  cluster.gone(id);
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
  cluster.tick();
  EXPECT_NE(cluster.nodes(id).front(), node);
}

TEST(CoreNodes, ThatCannotWorkAreNotDrained) {
  ScriptedCluster cluster;
  cluster.send(lost(NodeId(0)));
  EXPECT_FALSE(cluster.send(DrainNode{NodeId(0), true, "disk"}).answer.status);
  EXPECT_EQ(cluster.health(NodeId(0)), NodeHealth::kLost);
  EXPECT_FALSE(cluster.send(ResumeNode{NodeId(0)}).answer.status);
  EXPECT_FALSE(cluster.send(DrainNode{NodeId(77), true, ""}).answer.status);
}

TEST(CoreNodes, AreEmptyInAMaintenanceWindowAndLeftAloneAfterIt) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  const Instant from = cluster.now() + Duration::hours(1);
  cluster.send(SetMaintenance{7, {node}, from, from + Duration::hours(2)});
  EXPECT_FALSE(cluster.send(SetMaintenance{8, {node}, from, from}).answer.status);
  cluster.wait(Duration::hours(1));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.gone(id);
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
  cluster.wait(Duration::hours(2));
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
  EXPECT_TRUE(cluster.state().closed().windows().empty());
  // An operator's drain during the window outlasts the window.
  cluster.send(DrainNode{node, false, "disk"});
  const Instant next = cluster.now() + Duration::hours(1);
  cluster.send(SetMaintenance{9, {NodeId(3)}, next, next + Duration::hours(1)});
  cluster.wait(Duration::hours(3));
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
  EXPECT_EQ(cluster.health(NodeId(3)), NodeHealth::kReady);
}

TEST(CoreNodes, WithAFaultAreMendedOnceTheyAreEmpty) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  cluster.send(NodeFault{node, FaultLayer::kAccelerator, "xid 79", true, true});
  EXPECT_EQ(cluster.health(node), NodeHealth::kQuarantined);
  EXPECT_EQ(cluster.job(id).stop, StopReason::kInfra);
  EXPECT_EQ(cluster.job(id).blame.evidence, "xid 79");
  EXPECT_FALSE(asked<RepairNode>(cluster));
  cluster.gone(id);
  EXPECT_EQ(cluster.health(node), NodeHealth::kRepairing);
  EXPECT_TRUE(asked<RepairNode>(cluster));
  cluster.wait(Duration::hours(5));
  cluster.send(NodeRepaired{node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_NE(cluster.nodes(id).front(), node);
}

TEST(CoreNodes, ThatAreLostKeepTheDevicesOfTheirJobUntilTheyAreFenced) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(16));
  const NodeId gone = cluster.nodes(id).front();
  const NodeId left = cluster.nodes(id).back();
  cluster.send(NodeHeard{gone, NodeHealth::kSuspect, 2});
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.send(lost(gone));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.gone(id, {left});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.wait(Duration::hours(1));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  EXPECT_FALSE(cluster.send(FenceNode{left}).answer.status);
  cluster.send(FenceNode{gone});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  const std::vector<NodeId> now = cluster.nodes(id);
  EXPECT_EQ(std::count(now.begin(), now.end(), gone), 0);
  EXPECT_EQ(std::count(now.begin(), now.end(), left), 1);
  cluster.up(id);
  cluster.end(id);
}

TEST(CoreNodes, ThatAreLostDoNotHoldUpWhatMayStartAtOnce) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(16);
  submission.restart = RestartPolicy::kAtOnce;
  const JobId id = cluster.run(submission);
  const NodeId gone = cluster.nodes(id).front();
  cluster.send(lost(gone));
  cluster.gone(id, {cluster.nodes(id).back()});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.state().ghosts().size(), 1u);
  cluster.up(id);
  // Reports about the old attempt do not affect the new one.
  cluster.send(NodeFault{gone, FaultLayer::kHost, "no answer", false, true});
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.send(RanksGone{id, 1, {gone}, std::nullopt});
  EXPECT_TRUE(cluster.state().ghosts().empty());
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.send(NodeJoined{gone, 3});
  EXPECT_EQ(cluster.health(gone), NodeHealth::kReady);
}

TEST(CoreNodes, ThatWereAllOfAJobDoNotHoldItUpEither) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.restart = RestartPolicy::kAtOnce;
  const JobId id = cluster.run(submission);
  const NodeId gone = cluster.nodes(id).front();
  cluster.send(lost(gone));
  EXPECT_EQ(cluster.job(id).attempt, 2u);
  EXPECT_NE(cluster.nodes(id).front(), gone);
  const JobId unfenced = cluster.run(cluster.job(8));
  cluster.send(lost(cluster.nodes(unfenced).front()));
  EXPECT_EQ(cluster.phase(unfenced), JobPhase::kStopping);
  cluster.send(CancelJob{unfenced});
  EXPECT_EQ(cluster.phase(unfenced), JobPhase::kCancelled);
}

TEST(CoreNodes, ThatAreLostEndWhatNeverStartsAgain) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.restart = RestartPolicy::kNever;
  const JobId id = cluster.run(submission);
  const NodeId node = cluster.nodes(id).front();
  cluster.send(NodeJoined{node, 1});
  cluster.send(lost(node));
  cluster.wait(seconds(100));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.send(NodeJoined{node, 2});
  EXPECT_EQ(cluster.phase(id), JobPhase::kFailed);
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
}

TEST(CoreNodes, ThatDrainCanBeLost) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  cluster.send(DrainNode{node, false, "disk"});
  cluster.send(lost(node));
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
  cluster.send(FenceNode{node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kLost);
  EXPECT_NE(cluster.nodes(id).front(), node);
}

TEST(CoreNodes, ThatAreLostOrBreakWhileTheyDrainAreDrainedWhenTheyComeBack) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  cluster.send(DrainNode{node, false, "disk"});
  cluster.send(lost(node));
  EXPECT_EQ(cluster.health(node), NodeHealth::kLost);
  cluster.send(NodeJoined{node, 5});
  EXPECT_EQ(cluster.health(node), NodeHealth::kDraining);
  cluster.send(NodeFault{node, FaultLayer::kHost, "fan", true, true});
  cluster.gone(id, {node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kRepairing);
  cluster.send(NodeRepaired{node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
  cluster.send(ResumeNode{node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
  cluster.send(lost(node));
  cluster.send(NodeJoined{node, 6});
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
}

TEST(CoreNodes, ThatAreLostInAMaintenanceWindowAreReadyWhenTheyComeBackAfterIt) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  const Instant from = cluster.now() + Duration::hours(1);
  cluster.send(SetMaintenance{7, {node}, from, from + Duration::hours(1)});
  cluster.wait(Duration::hours(1));
  cluster.send(lost(node));
  cluster.wait(Duration::hours(1));
  EXPECT_EQ(cluster.health(node), NodeHealth::kLost);
  cluster.send(NodeJoined{node, 5});
  EXPECT_EQ(cluster.health(node), NodeHealth::kReady);
}

TEST(CoreNodes, ThatAreDrainedAndBreakAreMendedBeforeTheyAreResumed) {
  ScriptedCluster cluster;
  const NodeId node(0);
  cluster.send(DrainNode{node, false, "disk"});
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
  cluster.send(NodeFault{node, FaultLayer::kAccelerator, "xid 79", true, true});
  EXPECT_EQ(cluster.health(node), NodeHealth::kRepairing);
  EXPECT_TRUE(asked<RepairNode>(cluster));
  cluster.send(NodeRepaired{node});
  EXPECT_EQ(cluster.health(node), NodeHealth::kDrained);
}

TEST(CoreNodes, AreLemonsByTheFaultsOfTheWindowAlone) {
  ScriptedCluster cluster;
  const NodeId node(0);
  const Duration nearly = cluster.setup().timing.lemon_window - Duration::hours(1);
  for (int i = 0; i < 30; ++i) {
    cluster.send(NodeFault{node, FaultLayer::kHost, "reboot", false, false});
    cluster.wait(nearly);
  }
  EXPECT_FALSE(cluster.state().node(node).lemon);
  EXPECT_LE(cluster.state().node(node).faults.size(), 2u);
}

TEST(CoreNodes, WithAnotherBootHaveLostWhatRanThere) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(id).front();
  cluster.send(NodeJoined{node, 10});
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.send(NodeJoined{node, 10});
  EXPECT_EQ(cluster.count<NodeBooted>(), 0u);
  cluster.send(NodeJoined{node, 11});
  EXPECT_EQ(cluster.job(id).usage.faults, 1u);
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.job(id).attempt, 2u);
}

TEST(CoreNodes, ASpareTakesThePlaceOfALostOne) {
  ScriptedCluster cluster;
  cluster.send(SetSpare{NodeId(3), true});
  const JobId id = cluster.run(cluster.job(24));
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(1), NodeId(2)}));
  cluster.send(lost(NodeId(1)));
  cluster.gone(id, {NodeId(0), NodeId(2)});
  cluster.send(FenceNode{NodeId(1)});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(2), NodeId(3)}));
  EXPECT_EQ(cluster.state().spares(), (std::set{NodeId(1)}));
  cluster.send(NodeJoined{NodeId(1), 5});
  EXPECT_EQ(cluster.health(NodeId(1)), NodeHealth::kReady);
  cluster.tick();
  const JobId next = cluster.submit(cluster.job(8));
  cluster.tick();
  EXPECT_EQ(cluster.phase(next), JobPhase::kQueued) << "a spare takes no work";
}

TEST(CoreNodes, OfAnElasticJobThatAreLostLeaveItSmaller) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 32));
  ASSERT_EQ(cluster.nodes(id).size(), 4u);
  cluster.wait(Duration::minutes(10));
  cluster.send(lost(NodeId(2)));
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  EXPECT_EQ(cluster.job(id).epoch, 1u);
  EXPECT_FALSE(cluster.job(id).up);
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(1), NodeId(3)}));
  EXPECT_EQ(cluster.job(id).leaving, 8u);
  cluster.send(RanksUp{id, 1, 0});
  EXPECT_FALSE(cluster.job(id).up) << "of the epoch before";
  cluster.up(id);
  EXPECT_TRUE(cluster.job(id).up);
  cluster.wait(Duration::minutes(10));
  cluster.send(FenceNode{NodeId(2)});
  EXPECT_EQ(cluster.job(id).leaving, 0u);
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  cluster.wait(Duration::minutes(1));
  cluster.end(id);
}

TEST(CoreNodes, OfAnElasticJobThatAreLostAreReplacedByOthersAtOnce) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  const std::vector<NodeId> before = cluster.nodes(id);
  ASSERT_EQ(before.size(), 2u);
  cluster.send(lost(before[0]));
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
  EXPECT_EQ(cluster.job(id).epoch, 1u);
  const std::vector<NodeId> after = cluster.nodes(id);
  ASSERT_EQ(after.size(), 2u) << "it keeps its size";
  EXPECT_EQ(std::count(after.begin(), after.end(), before[0]), 0);
  EXPECT_EQ(std::count(after.begin(), after.end(), before[1]), 1) << "who is well stays";
  EXPECT_EQ(cluster.job(id).leaving, 8u);
  cluster.up(id);
  cluster.wait(Duration::minutes(1));
  cluster.end(id);
}

TEST(CoreNodes, OfAnElasticJobThatAreLostAreReplacedByASpare) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  const NodeId gone = cluster.nodes(id)[0];
  const NodeId spare(3);
  cluster.send(SetSpare{spare, true});
  cluster.send(lost(gone));
  const std::vector<NodeId> after = cluster.nodes(id);
  EXPECT_EQ(std::count(after.begin(), after.end(), spare), 1);
  EXPECT_FALSE(cluster.state().node(spare).spare);
  EXPECT_TRUE(cluster.state().node(gone).spare) << "once it is mended";
}

TEST(CoreNodes, AJobThatEndsBeforeItsEarlierEpochIsGoneLeavesAGhost) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 32));
  cluster.send(lost(NodeId(2)));
  cluster.up(id);
  cluster.wait(Duration::minutes(10));
  cluster.send(RanksEnded{id, 1, ExitKind::kDone, {}, {.done = 1}, false});
  cluster.gone(id, {NodeId(0), NodeId(1), NodeId(3)});
  EXPECT_EQ(cluster.phase(id), JobPhase::kFinished);
  EXPECT_EQ(cluster.state().ghosts().size(), 1u);
  cluster.wait(Duration::minutes(10));
  cluster.send(NodeJoined{NodeId(2), 9});
  cluster.send(RanksGone{id, 1, {NodeId(2)}, std::nullopt});
  EXPECT_TRUE(cluster.state().ghosts().empty());
}

ResizeJob resized(const ScriptedCluster& cluster, JobId id, std::vector<NodeDevices> ranks) {
  const RunningJob& run = cluster.state().running(id);
  PlacedGang gang = run.gangs.front();
  const auto& options = run.request->roles.front().options;
  std::uint32_t devices = 0;
  for (const NodeDevices& at : ranks) {
    devices += static_cast<std::uint32_t>(std::popcount(at.devices));
  }
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    if (options[i].gang.devices == devices) gang.option = i;
  }
  gang.allocation.ranks = std::move(ranks);
  GangTerms terms = run.terms.front();
  terms.length = Duration::hours(1);
  return {.job = id, .gangs = {gang}, .terms = {terms}};
}

TEST(CoreResizes, DevicesThatAJobLeavesAreFreeWhenTheOldRanksAreGone) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  ASSERT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(1)}));
  cluster.wait(Duration::minutes(30));
  cluster.decide({resized(cluster, id, {{NodeId(3), 0xff}})});
  EXPECT_EQ(cluster.job(id).leaving, 16u);
  const JobId other = cluster.submit(cluster.job(24));
  cluster.tick();
  EXPECT_EQ(cluster.phase(other), JobPhase::kQueued);
  cluster.wait(Duration::minutes(1));
  cluster.gone(id, {NodeId(0)});
  EXPECT_EQ(cluster.job(id).leaving, 8u);
  cluster.gone(id);
  cluster.tick();
  EXPECT_EQ(cluster.phase(other), JobPhase::kStarting);
  cluster.up(id);
  cluster.decide({resized(cluster, id, {{NodeId(2), 0xff}, {NodeId(3), 0xff}})});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 1u) << "the other is there";
  EXPECT_EQ(cluster.nodes(id), std::vector{NodeId(3)});
}

TEST(CoreResizes, AJobDoesNotStartAgainBesideAnEpochItLeft) {
  ScriptedCluster cluster;
  cluster.send(NodeJoined{NodeId(1), 8});
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  cluster.decide({resized(cluster, id, {{NodeId(0), 0xff}})});
  cluster.up(id);
  cluster.send(RanksEnded{id, 1, ExitKind::kInfra, {}, {}, false});
  cluster.gone(id, {NodeId(0)});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping) << "of the first epoch node 1 may have ranks";
  cluster.send(NodeJoined{NodeId(1), 9});
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
}

TEST(CoreResizes, WhatIsGoneOfAnEarlierEpochFreesNothingOfALaterOne) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  cluster.decide({resized(cluster, id, {{NodeId(0), 0x0f}, {NodeId(1), 0x0f}})});
  cluster.up(id);
  const RanksGone shed{id, 1, {NodeId(0)}, std::nullopt, 0};
  cluster.send(shed);
  EXPECT_EQ(cluster.job(id).leaving, 4u);
  cluster.send(CancelJob{id});
  cluster.send(shed);
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(1)}));
  cluster.gone(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kCancelled);
}

TEST(CoreResizes, DoNotRenewATimeLimit) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.request.time_limit = Duration::minutes(10);
  const JobId id = cluster.run(submission);
  const NodeId other(cluster.nodes(id).front() == NodeId(3) ? 2 : 3);
  cluster.wait(Duration::minutes(8));
  cluster.decide({resized(cluster, id, {{other, 0xff}})});
  cluster.wait(Duration::minutes(1));
  cluster.up(id);
  cluster.wait(Duration::minutes(1));
  EXPECT_EQ(cluster.job(id).stop, StopReason::kTimeLimit);
  EXPECT_EQ(cluster.phase(id), JobPhase::kStopping);
}

TEST(CoreResizes, MayOverlapWithWhatTheJobHas) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.elastic_job(8, 16));
  cluster.wait(Duration::minutes(30));
  cluster.decide({resized(cluster, id, {{NodeId(0), 0x0f}, {NodeId(2), 0xf0}})});
  EXPECT_EQ(cluster.job(id).leaving, 12u);
  cluster.wait(Duration::minutes(30));
  cluster.send(CancelJob{id});
  cluster.gone(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kCancelled);
  EXPECT_TRUE(cluster.state().ghosts().empty());
}

TEST(CoreDecisions, ThatNoLongerFitAreDropped) {
  ScriptedCluster cluster;
  const JobId runs = cluster.run(cluster.job(8));
  const JobId waits = cluster.submit(cluster.job(8));
  const RunningJob& run = cluster.state().running(runs);
  StartJob start{.job = waits, .gangs = run.gangs, .terms = run.terms};
  cluster.decide({start});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 1u);
  EXPECT_EQ(cluster.phase(waits), JobPhase::kQueued);
  start.gangs.front().allocation.ranks = {{NodeId(3), 0xff}};
  start.gangs.front().allocation.idle = {{NodeId(0), 0xff}};
  cluster.decide({start});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 1u) << "not alone there";
  start.gangs.front().allocation.idle = {{NodeId(2), 0xff}};
  cluster.decide({start, start});
  EXPECT_EQ(cluster.phase(waits), JobPhase::kStarting);
  EXPECT_EQ(cluster.count<DecisionDropped>(), 1u);
  cluster.up(waits);
  cluster.wait(seconds(10));
  cluster.end(waits);
  Proposal proposal;
  proposal.result.reservations = {{.job = waits}, {.job = runs}};
  cluster.send(proposal);
  EXPECT_TRUE(cluster.state().slots().empty());
}

TEST(CoreDecisions, ThatAreBeyondAQuotaByNowAreDropped) {
  ScriptedOptions options;
  options.tenants = "- {name: default, limit: {h100: 16}}\n";
  options.policy = "capacity";
  ScriptedCluster cluster(options);
  const JobId grows = cluster.run(cluster.elastic_job(8, 16));
  ASSERT_EQ(cluster.nodes(grows).size(), 2u);
  const RunningJob& run = cluster.state().running(grows);
  ResizeJob more{.job = grows, .gangs = run.gangs, .terms = run.terms};
  const std::string head = "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n";
  ASSERT_TRUE(
      cluster.send(SetTenants{head + "- {name: default, limit: {h100: 8}}\n"}).answer.status);
  cluster.decide({more});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 0u) << "it takes no more than it has";
  const JobId waits = cluster.submit(cluster.job(8));
  StartJob start{.job = waits, .gangs = {run.gangs.front()}, .terms = run.terms};
  start.gangs.front().allocation.ranks = {{NodeId(3), 0xff}};
  cluster.decide({start});
  EXPECT_EQ(cluster.count<DecisionDropped>(), 1u);
  EXPECT_EQ(cluster.phase(waits), JobPhase::kQueued);
}

TEST(CoreNodes, ThatAreSparesStaySparesWhereNoJobCanStartOnThem) {
  ScriptedOptions options;
  options.tenants = "- {name: default}\n";
  options.policy = "capacity";
  ScriptedCluster cluster(options);
  cluster.send(SetSpare{NodeId(3), true});
  const JobId id = cluster.run(cluster.job(16));
  const NodeId gone = cluster.nodes(id).front();
  const std::string head = "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n";
  ASSERT_TRUE(
      cluster.send(SetTenants{head + "- {name: default, limit: {h100: 8}}\n"}).answer.status);
  cluster.send(NodeFault{gone, FaultLayer::kHost, "ecc", true, true});
  cluster.gone(id);
  EXPECT_EQ(cluster.phase(id), JobPhase::kQueued) << "beyond its quota by now";
  EXPECT_TRUE(cluster.state().node(NodeId(3)).spare);
  const auto& log = cluster.log();
  EXPECT_EQ(
      std::count_if(log.begin(), log.end(),
                    [](const auto& entry) { return std::holds_alternative<SpareSet>(entry.what); }),
      1)
      << "the log holds no trial of the spare";
}

TEST(CoreNodes, ThatFailTooOftenAreLemons) {
  ScriptedCluster cluster;
  for (int i = 0; i < 2; ++i) {
    cluster.send(NodeFault{NodeId(1), FaultLayer::kHost, "ecc", false, false});
    cluster.wait(Duration::hours(1));
  }
  EXPECT_FALSE(cluster.state().node(NodeId(1)).lemon);
  cluster.wait(Duration::hours(24) * 30);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(cluster.state().node(NodeId(1)).lemon);
    cluster.send(NodeFault{NodeId(1), FaultLayer::kHost, "ecc", false, false});
  }
  EXPECT_TRUE(cluster.state().node(NodeId(1)).lemon);
  const std::span<const float> risk = cluster.state().situation(cluster.now()).node_risk;
  EXPECT_EQ(risk[0], 1);
  EXPECT_EQ(risk[1], 4);
}

}  // namespace
}  // namespace orrery

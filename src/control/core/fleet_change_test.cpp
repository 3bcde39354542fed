// control/core/fleet_change_test.cpp - the fleet changes under running jobs: their devices, meters
// and history stay with the nodes, whatever ids these have.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "control/scripted_cluster_test.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

struct TestRack {
  std::string name;
  std::uint32_t nodes = 2;
  std::string type = "dgx-h100";
};

std::string fleet_of(const std::vector<TestRack>& racks) {
  std::string pods = "    - name: su\n      racks:\n";
  for (const TestRack& rack : racks) {
    pods += "      - {name: " + rack.name +
            ", cooling: in-row-or-dense-air, nodes: [{type: " + rack.type +
            ", count: " + std::to_string(rack.nodes) + "}]}\n";
  }
  return one_hall(pods);
}

const std::vector<TestRack> kTwoRacks{{"a"}, {"b"}};

std::vector<std::string> node_names(const ScriptedCluster& cluster, JobId job) {
  const std::vector<NodeId> nodes = cluster.nodes(job);
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const NodeId node : nodes) names.push_back(cluster.topology().node_name(node));
  return names;
}

NodeId node_named(const ScriptedCluster& cluster, const std::string& name) {
  for (std::uint32_t n = 0; n < cluster.topology().node_count(); ++n) {
    if (cluster.topology().node_name(NodeId(n)).ends_with(name)) return NodeId(n);
  }
  ADD_FAILURE() << "no node " << name;
  return {};
}

Status set_fleet(ScriptedCluster& cluster, const std::vector<TestRack>& racks) {
  return cluster.send(SetFleet{fleet_of(racks)}).answer.status;
}

// A rack before all others and a node in the middle shift the ids of every node that stays.
TEST(FleetChange, RunningJobsKeepTheirNodesAndAWaitingJobTakesTheNewOnes) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const JobId first = cluster.run(cluster.job(16));
  const JobId second = cluster.run(cluster.job(16));
  const JobId waits = cluster.submit(cluster.job(8));
  cluster.wait(Duration::minutes(5));
  ASSERT_EQ(cluster.phase(waits), JobPhase::kQueued);
  const std::vector<std::string> on_first = node_names(cluster, first);
  const std::vector<std::string> on_second = node_names(cluster, second);

  ASSERT_TRUE(set_fleet(cluster, {{"new", 1}, {"a", 3}, {"b", 2}}));
  EXPECT_EQ(cluster.topology().node_count(), 6U);
  EXPECT_EQ(node_names(cluster, first), on_first);
  EXPECT_EQ(node_names(cluster, second), on_second);
  cluster.tick();
  EXPECT_EQ(cluster.phase(waits), JobPhase::kStarting);
  cluster.up(waits);
  cluster.wait(Duration::minutes(5));
  cluster.end(first);
  cluster.end(second);
  cluster.end(waits);
  EXPECT_EQ(cluster.job(first).attempt, 1U);
  EXPECT_EQ(cluster.state().ended_jobs(), 3U);
}

TEST(FleetChange, AnAddedNodeTakesNoWorkBeforeItJoins) {
  ScriptedCluster cluster({.fleet = fleet_of({{"a", 1}}), .nodes_begin = NodeHealth::kJoining});
  cluster.send(NodeJoined{NodeId(0), 5});
  (void)cluster.run(cluster.job(8));
  const JobId waits = cluster.submit(cluster.job(8));
  ASSERT_TRUE(set_fleet(cluster, {{"a", 2}}));
  cluster.tick();
  const NodeId added = node_named(cluster, "/n2");
  EXPECT_EQ(cluster.health(added), NodeHealth::kJoining);
  EXPECT_EQ(cluster.phase(waits), JobPhase::kQueued);
  EXPECT_EQ(cluster.state().node(added).number, 1U);
  cluster.send(NodeJoined{added, 6});
  cluster.tick();
  EXPECT_EQ(cluster.nodes(waits), std::vector{added});
}

TEST(FleetChange, OnlyEmptyNodesRetire) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const JobId job = cluster.run(cluster.job(16));
  const std::string busy =
      node_names(cluster, job).front().find("/a/") != std::string::npos ? "a" : "b";
  const std::string idle = busy == "a" ? "b" : "a";
  const Status refused = set_fleet(cluster, {{idle}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(refused.error().message.find("has job 0"), std::string::npos) << refused.error().text();
  EXPECT_EQ(cluster.count<FleetSet>(), 0U);

  ASSERT_TRUE(set_fleet(cluster, {{busy}}));
  EXPECT_EQ(cluster.topology().node_count(), 2U);
  cluster.wait(Duration::minutes(1));
  cluster.end(job);
  EXPECT_EQ(cluster.phase(job), JobPhase::kFinished);
}

// The ended job's history names a node that is gone.
TEST(FleetChange, AnEndedJobForgetsRetiredNodes) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  Submission with_spec = cluster.job(32);
  const Outcome& outcome = cluster.send(SubmitJob{with_spec, "kind: Batch", "ann", ""});
  const JobId job = outcome.answer.job;
  cluster.tick();
  cluster.up(job);
  cluster.wait(Duration::minutes(1));
  cluster.end(job);
  ASSERT_EQ(cluster.job(job).placed.front().size(), 4U);
  ASSERT_TRUE(set_fleet(cluster, {{"b"}}));
  EXPECT_EQ(cluster.job(job).placed.front().size(), 2U);
  EXPECT_EQ(cluster.job(job).attempts.front().nodes.size(), 2U);
}

TEST(FleetChange, ANodeThatMayStillRunRanksStays) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const JobId job = cluster.run(cluster.job(8));
  const NodeId node = cluster.nodes(job).front();
  const std::string rack =
      cluster.topology().node_name(node).find("/a/") != std::string::npos ? "b" : "a";
  cluster.send(NodeHeard{node, NodeHealth::kLost, 9});
  cluster.tick();
  EXPECT_FALSE(set_fleet(cluster, {{rack}}));
  cluster.send(FenceNode{node});
  cluster.tick();
  while (cluster.phase(job) != JobPhase::kStarting) cluster.wait(Duration::seconds(10));
  cluster.up(job);
  cluster.wait(Duration::minutes(1));
  cluster.end(job);
  EXPECT_TRUE(set_fleet(cluster, {{rack}}));
}

// A type that comes first in the file shifts the ids of the others; meters go on by type.
TEST(FleetChange, ATypeIsAdded) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks), .power = PowerLimits::kAsBuilt});
  const JobId job = cluster.run(cluster.job(16));
  cluster.wait(Duration::minutes(30));
  ASSERT_TRUE(set_fleet(cluster, {{"old", 2, "dgx-a100-80g"}, {"a"}, {"b"}}));
  Submission other = cluster.job(8);
  other.request.roles.front().options.front().gang = cluster.gang(8, "a100");
  const JobId on_old = cluster.run(other);
  cluster.wait(Duration::minutes(30));
  cluster.end(on_old);
  cluster.end(job);
  EXPECT_EQ(cluster.state().ended_jobs(), 2U);
  EXPECT_FALSE(set_fleet(cluster, kTwoRacks)) << "a type does not vanish";
}

/// The request of a job that waits, with one more option.
ResolveJob with_option(const ScriptedCluster& cluster, JobId job, const GangRequest& gang) {
  ResolveJob resolved{job, cluster.job(job).submission->request};
  resolved.request.roles.front().options.push_back({gang, 1, std::nullopt});
  resolved.request.class_id = ClassId(90);
  return resolved;
}

TEST(FleetChange, AWaitingJobIsResolvedForAnAddedType) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const JobId runs = cluster.run(cluster.job(32));
  const JobId waits = cluster.submit(cluster.job(8));
  ASSERT_TRUE(set_fleet(cluster, {{"old", 2, "dgx-a100-80g"}, {"a"}, {"b"}}));
  cluster.tick();
  ASSERT_EQ(cluster.phase(waits), JobPhase::kQueued);

  const GangRequest old = cluster.gang(8, "a100");
  EXPECT_FALSE(cluster.send(with_option(cluster, runs, old)).answer.status)
      << "its placement names the options it has";
  EXPECT_TRUE(
      cluster.send(ResolveJob{waits, cluster.job(waits).submission->request}).answer.status);
  EXPECT_EQ(cluster.count<JobResolved>(), 0U) << "nothing has changed";

  const std::uint64_t version = cluster.state().version();
  ASSERT_TRUE(cluster.send(with_option(cluster, waits, old)).answer.status);
  EXPECT_FALSE(cluster.send(Proposal{.version = version, .result = {}}).answer.status)
      << "a pass that began before names options of before";
  cluster.tick();
  ASSERT_EQ(cluster.phase(waits), JobPhase::kStarting);
  EXPECT_EQ(cluster.state().running(waits).gangs.front().option, 1U);
  cluster.up(waits);
  cluster.end(waits);
  EXPECT_FALSE(cluster.send(with_option(cluster, runs, old)).answer.status);
  cluster.end(runs);
  EXPECT_EQ(cluster.state().ended_jobs(), 2U);
}

// Its place after a fault is kept as options of its request, which change.
TEST(FleetChange, AJobThatLostANodeIsResolvedAndRestarts) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const JobId job = cluster.run(cluster.job(32));
  const NodeId lost = cluster.nodes(job).front();
  cluster.send(NodeHeard{lost, NodeHealth::kLost, 9});
  cluster.send(FenceNode{lost});
  cluster.tick();
  cluster.gone(job);
  cluster.tick();
  ASSERT_EQ(cluster.phase(job), JobPhase::kQueued);
  ASSERT_TRUE(set_fleet(cluster, {{"old", 2, "dgx-a100-80g"}, {"a"}, {"b"}}));
  ResolveJob resolved{job, cluster.job(job).submission->request};
  std::vector<GangOption>& options = resolved.request.roles.front().options;
  options.insert(options.begin(), {cluster.gang(16, "a100"), 1, std::nullopt});
  ASSERT_TRUE(cluster.send(resolved).answer.status);
  cluster.tick();
  ASSERT_EQ(cluster.phase(job), JobPhase::kStarting);
  EXPECT_EQ(cluster.state().running(job).gangs.front().option, 0U);
}

TEST(FleetChange, NodesThatStayKeepTheirOrder) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const Status refused = set_fleet(cluster, {{"b"}, {"a"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another order"), std::string::npos);
}

TEST(FleetChange, ADecisionForTheFleetOfBeforeIsRefused) {
  ScriptedCluster cluster({.fleet = fleet_of(kTwoRacks)});
  const std::uint64_t version = cluster.state().version();
  ASSERT_TRUE(set_fleet(cluster, {{"new"}, {"a"}, {"b"}}));
  EXPECT_FALSE(cluster.send(Proposal{.version = version, .result = {}}).answer.status);
  EXPECT_TRUE(
      cluster.send(Proposal{.version = cluster.state().version(), .result = {}}).answer.status);
}

/// A fleet that grows, shrinks and gets racks between others while jobs come, end and lose nodes.
class RandomFleet {
 public:
  explicit RandomFleet(std::uint64_t seed) : rng_(seed) {}

  void step() {
    switch (rng_.below(6)) {
      case 0:
        (void)cluster_.submit(cluster_.job(static_cast<std::uint32_t>(1 + rng_.below(24))));
        return cluster_.tick();
      case 1:
        return change();
      case 2:
        return end_one();
      case 3:
        return lose_one();
      default:
        return cluster_.wait(Duration::seconds(static_cast<std::int64_t>(rng_.below(600))));
    }
  }

  [[nodiscard]] std::uint32_t changes() const { return changes_; }
  [[nodiscard]] std::uint32_t refused() const { return refused_; }

 private:
  void change() {
    std::vector<TestRack> racks = racks_;
    const auto at = racks.begin() + static_cast<std::ptrdiff_t>(rng_.below(racks.size()));
    switch (rng_.below(4)) {
      case 0:
        racks.insert(at, {"r" + std::to_string(++named_), 2});
        break;
      case 1:
        if (racks.size() > 1) racks.erase(at);
        break;
      case 2:
        ++at->nodes;
        break;
      default:
        if (at->nodes > 2) --at->nodes;
        break;
    }
    if (set_fleet(cluster_, racks)) {
      racks_ = std::move(racks);
      ++changes_;
    } else {
      ++refused_;
    }
    cluster_.tick();
    for (const RunningJob& run : cluster_.state().running()) {
      if (!cluster_.job(run.id).up && cluster_.phase(run.id) == JobPhase::kStarting) {
        return cluster_.up(run.id);
      }
    }
  }

  void end_one() {
    if (cluster_.state().running().empty()) return;
    const JobId job = cluster_.state().running().front().id;
    if (cluster_.phase(job) == JobPhase::kStarting) cluster_.up(job);
    if (cluster_.phase(job) == JobPhase::kRunning) cluster_.end(job);
    cluster_.tick();
  }

  void lose_one() {
    const NodeId node(static_cast<std::uint32_t>(rng_.below(cluster_.topology().node_count())));
    cluster_.send(NodeHeard{node, NodeHealth::kLost, 9});
    cluster_.tick();
    if (rng_.below(2) == 0) cluster_.send(FenceNode{node});
    cluster_.send(NodeJoined{node, ++boots_});
    cluster_.tick();
  }

  Rng rng_;
  std::vector<TestRack> racks_ = kTwoRacks;
  ScriptedCluster cluster_{{.fleet = fleet_of(kTwoRacks), .policy = "hardware-aware"}};
  std::uint64_t boots_ = 0;
  std::uint32_t named_ = 0;
  std::uint32_t changes_ = 0;
  std::uint32_t refused_ = 0;
};

TEST(FleetChange, InvariantsHoldWhateverChanges) {
  std::uint32_t changes = 0;
  std::uint32_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    RandomFleet fleet(seed);
    for (int step = 0; step < 80 && !testing::Test::HasFailure(); ++step) fleet.step();
    changes += fleet.changes();
    refused += fleet.refused();
  }
  EXPECT_GT(changes, 20U);
  EXPECT_GT(refused, 5U);
}

}  // namespace
}  // namespace orrery

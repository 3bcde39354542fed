// control/core/core_restarts_test.cpp - jobs that wait to restart after they lost nodes.
#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

/// Returns a job of 24 devices on nodes 0 to 2, with node 3 a spare; node 1 and then its
/// replacement are lost, so that the job waits and only its own nodes 0 and 2 are free.
JobId waiting_to_restart(ScriptedCluster& cluster) {
  cluster.send(SetSpare{NodeId(3), true});
  const JobId id = cluster.send(SubmitJob{cluster.job(24), "kind: Train"}).answer.job;
  cluster.tick();
  cluster.up(id);
  for (const NodeId node : {NodeId(1), NodeId(3)}) {
    cluster.send(NodeFault{node, FaultLayer::kHost, "ecc", true, true});
    cluster.gone(id);
    if (node == NodeId(1)) cluster.up(id);
  }
  EXPECT_EQ(cluster.phase(id), JobPhase::kQueued);
  EXPECT_EQ(cluster.state().spares(), (std::set{NodeId(1)}));
  return id;
}

TEST(CoreRestarts, TakeSparesAsTheyAreRepaired) {
  ScriptedCluster cluster;
  const JobId id = waiting_to_restart(cluster);
  cluster.send(NodeRepaired{NodeId(1)});
  cluster.tick();
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(1), NodeId(2)}));
  EXPECT_EQ(cluster.state().spares(), (std::set{NodeId(3)})) << "once it is mended";
}

TEST(CoreRestarts, TakeSparesInACoreThatGoesOnFromASnapshot) {
  ScriptedCluster cluster;
  const JobId id = waiting_to_restart(cluster);
  Core core(cluster.setup());
  ASSERT_TRUE(core.restore(snapshot_of(cluster.state())));
  core.resume();
  core.handle({.at = cluster.now(), .what = NodeRepaired{NodeId(1)}});
  core.handle({.at = core.wake(), .what = Tick{}});
  EXPECT_EQ(core.state().job(id).phase, JobPhase::kStarting);
  EXPECT_EQ(core.state().spares(), (std::set{NodeId(3)}));
}

TEST(CoreRestarts, TakeRepairedNodesBeforeNewJobsDo) {
  ScriptedOptions options;
  options.policy = "easy";
  ScriptedCluster cluster(options);
  const JobId id = waiting_to_restart(cluster);
  Submission urgent = cluster.job(8);
  urgent.request.priority = 100;
  cluster.send(DrainNode{NodeId(0)});
  cluster.send(DrainNode{NodeId(2)});
  const JobId other = cluster.submit(urgent);
  cluster.tick();
  ASSERT_EQ(cluster.phase(other), JobPhase::kQueued);
  cluster.send(ResumeNode{NodeId(0)});
  cluster.send(ResumeNode{NodeId(2)});
  cluster.send(NodeRepaired{NodeId(3)});
  cluster.tick();
  EXPECT_EQ(cluster.nodes(id), (std::vector{NodeId(0), NodeId(2), NodeId(3)}));
  EXPECT_EQ(cluster.phase(other), JobPhase::kQueued);
}

TEST(CoreRestarts, TakeSparesForNodesThatOthersHaveTakenMeanwhile) {
  ScriptedCluster cluster;
  const JobId id = waiting_to_restart(cluster);
  const JobId other = cluster.run(cluster.job(8));
  const NodeId taken = cluster.nodes(other).front();
  cluster.send(NodeRepaired{NodeId(1)});
  cluster.tick();
  EXPECT_EQ(cluster.phase(id), JobPhase::kQueued) << "one node is too few";
  cluster.send(NodeRepaired{NodeId(3)});
  cluster.tick();
  EXPECT_EQ(cluster.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster.state().spares(), (std::set{taken})) << "when the other has left it";
  EXPECT_EQ(cluster.phase(other), JobPhase::kRunning);
}

}  // namespace
}  // namespace orrery

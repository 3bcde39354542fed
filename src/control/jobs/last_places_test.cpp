#include "control/jobs/last_places.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class LastPlacesTest : public ::testing::Test {
 protected:
  /// Starts a job that has a text, so that its record names its place.
  JobId run(const Submission& submission) {
    const JobId id = cluster_.send(SubmitJob{submission, "kind: Batch"}).answer.job;
    cluster_.tick();
    cluster_.up(id);
    return id;
  }
  void end(JobId id, ExitKind kind) {
    cluster_.send(RanksEnded{id, cluster_.job(id).attempt, kind, {}, {}, true});
  }
  void recall() { places_.recall_all(cluster_.state()); }

  ScriptedCluster cluster_;
  LastPlaces places_;
};

TEST_F(LastPlacesTest, AreThoseOfJobsThatTheInfrastructureStopped) {
  const JobId faulty = run(cluster_.job(8));
  const JobId program = run(cluster_.job(8));
  const JobId runs = run(cluster_.job(8));
  const NodeId node = cluster_.nodes(faulty).front();
  cluster_.send(NodeFault{node, FaultLayer::kHost, "ecc", true, true});
  end(program, ExitKind::kProgram);
  ASSERT_EQ(cluster_.phase(faulty), JobPhase::kStopping);
  places_.remember(runs, {});
  recall();
  ASSERT_EQ(places_.all().size(), 1U) << "neither the program's fault nor a running job";
  const auto& [job, gangs] = *places_.all().begin();
  EXPECT_EQ(job, faulty);
  ASSERT_EQ(gangs.size(), 1U);
  EXPECT_EQ(gangs.front().allocation.ranks, (std::vector{NodeDevices{node, 0xff}}));
  EXPECT_EQ(gangs.front().host.cpu, 1000U);
  places_.forget(faulty);
  EXPECT_TRUE(places_.all().empty());
}

TEST_F(LastPlacesTest, NameTheOptionOfTheSizeThatTheJobHad) {
  const JobId id = run(cluster_.elastic_job(8, 24));
  ASSERT_EQ(cluster_.nodes(id).size(), 3U);
  cluster_.send(DrainNode{NodeId(3)});
  cluster_.send(NodeFault{cluster_.nodes(id).back(), FaultLayer::kHost, "ecc", true, true});
  cluster_.up(id);
  ASSERT_EQ(cluster_.nodes(id).size(), 2U);
  for (const NodeId node : cluster_.nodes(id)) {
    cluster_.send(NodeFault{node, FaultLayer::kHost, "ecc", true, true});
    if (cluster_.phase(id) == JobPhase::kStarting) cluster_.up(id);
  }
  ASSERT_EQ(cluster_.phase(id), JobPhase::kStopping);
  recall();
  ASSERT_TRUE(places_.all().contains(id));
  const PlacedGang& gang = places_.all().at(id).front();
  EXPECT_EQ(gang.option, 2U) << "eight devices";
  EXPECT_EQ(gang.allocation.ranks.size(), 1U);
}

TEST_F(LastPlacesTest, AreNotKnownOfJobsWithoutATextOrWithTwoGangs) {
  const JobId silent = cluster_.run(cluster_.job(8));
  Submission two = cluster_.job(8);
  two.request.roles.push_back(two.request.roles.front());
  const JobId pair = run(two);
  for (const JobId id : {silent, pair}) {
    cluster_.send(NodeFault{cluster_.nodes(id).front(), FaultLayer::kHost, "ecc", true, true});
    ASSERT_EQ(cluster_.phase(id), JobPhase::kStopping);
  }
  recall();
  EXPECT_TRUE(places_.all().empty());
}

}  // namespace
}  // namespace orrery

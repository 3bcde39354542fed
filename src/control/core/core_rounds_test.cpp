// Policies in rounds under the core: when rounds are due, and what happens to slots.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/scripted_cluster_test.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

std::string one_rack(const std::string& nodes) {
  return "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: " +
         nodes + "\n";
}

std::string policy_yaml(const std::string& name) {
  return "apiVersion: orrery/v1\nkind: Policy\nname: " + name + "\n";
}

Submission saving(const ScriptedCluster& cluster, std::uint32_t devices) {
  Submission job = cluster.job(devices);
  job.request.estimate = Duration::hours(5);
  job.request.checkpoint_interval = Duration::minutes(5);
  job.request.preemptible = true;
  return job;
}

/// Plays minutes: starting jobs come up, stopping jobs leave.
void play(ScriptedCluster& cluster, int minutes) {
  for (int i = 0; i < minutes; ++i) {
    cluster.wait(Duration::minutes(1));
    for (std::uint64_t j = 0; j < cluster.state().jobs(); ++j) {
      const JobId id = JobId::at(j);
      if (cluster.phase(id) == JobPhase::kStarting) cluster.up(id);
      if (cluster.phase(id) == JobPhase::kStopping) cluster.gone(id);
    }
  }
}

TEST(CoreRounds, ALiveClusterChangesToRoundsWhileSlotsAreKept) {
  ScriptedCluster cluster({.policy = "conservative:reserve_devices=1"});
  const JobId first = cluster.run(saving(cluster, 32));
  const JobId second = cluster.submit(saving(cluster, 32));
  cluster.wait(Duration::minutes(1));
  ASSERT_EQ(cluster.state().slots().size(), 1u);
  ASSERT_TRUE(cluster.send(SetPolicy{policy_yaml("gavel")}).answer.status);
  play(cluster, 30);
  EXPECT_GT(cluster.job(first).attempt, 1u);
  EXPECT_GT(cluster.job(second).attempt, 0u);
}

TEST(CoreRounds, RoundsOfSeveralTypesAreDueAlthoughNobodyWaits) {
  for (const bool two : {false, true}) {
    const std::string nodes = two ? "[{type: dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]"
                                  : "[{type: dgx-h100, count: 2}]";
    ScriptedCluster cluster({.fleet = one_hall(one_rack(nodes)), .policy = "sia"});
    cluster.run(saving(cluster, 8));
    play(cluster, 5);
    const bool lately = std::ranges::any_of(cluster.log(), [&](const TimedEvent& event) {
      return std::holds_alternative<PassDone>(event.what) &&
             cluster.now() - event.at < Duration::minutes(2);
    });
    EXPECT_EQ(lately, two);
  }
}

TEST(CoreRounds, AJobThatStartedSmallGrowsThoughNothingElseHappens) {
  ScriptedCluster cluster(
      {.fleet = one_hall(one_rack("[{type: dgx-h100, count: 2}]")), .policy = "sia:min_run=150 s"});
  const JobId other = cluster.run(saving(cluster, 8));
  play(cluster, 1);
  Submission elastic = saving(cluster, 16);
  GangOption small = elastic.request.roles.front().options.front();
  small.gang = cluster.gang(8);
  small.speed = 0.5;
  elastic.request.roles.front().options.push_back(small);
  elastic.request.roles.front().devices_min = 8;
  const JobId grows = cluster.submit(elastic);
  play(cluster, 1);
  EXPECT_EQ(cluster.state().running(grows).devices(), 8u);
  cluster.end(other);
  play(cluster, 10);
  EXPECT_EQ(cluster.state().running(grows).devices(), 16u);
}

TEST(CoreRounds, TheSlotOfAJobThatIsCancelledWhileItMovesIsGivenUp) {
  const std::string nodes = "[{type: dgx-h100, count: 1}, {type: dgx-a100-80g, count: 1}]";
  ScriptedCluster cluster({.fleet = one_hall(one_rack(nodes)), .policy = "sia"});
  Submission fixed = cluster.job(8);
  const JobId first = cluster.run(fixed);
  Submission either = saving(cluster, 8);
  GangOption slow = either.request.roles.front().options.front();
  slow.gang = cluster.gang(8, "a100");
  slow.speed = 0.3;
  either.request.roles.front().options.push_back(slow);
  const JobId moves = cluster.run(either);
  cluster.wait(Duration::minutes(30));
  cluster.end(first);
  while (cluster.phase(moves) == JobPhase::kRunning) cluster.wait(Duration::seconds(10));
  ASSERT_EQ(cluster.state().slots().size(), 1u);
  cluster.send(CancelJob{moves});
  cluster.submit(saving(cluster, 8));
  cluster.wait(Duration::minutes(2));
  EXPECT_TRUE(cluster.state().slots().empty());
}

TEST(CoreRounds, ThePeriodOfSharesEndsWithGavel) {
  ScriptedCluster cluster({.policy = "gavel"});
  cluster.run(saving(cluster, 8));
  cluster.submit(saving(cluster, 64));
  play(cluster, 10);
  EXPECT_FALSE(cluster.state().share_period().jobs.empty());
  ASSERT_TRUE(cluster.send(SetPolicy{policy_yaml("srtf")}).answer.status);
  cluster.submit(saving(cluster, 8));
  play(cluster, 20);
  EXPECT_TRUE(cluster.state().share_period().jobs.empty());
  ASSERT_TRUE(cluster.send(SetPolicy{policy_yaml("gavel")}).answer.status);
  play(cluster, 1);
  const Instant back = cluster.now();
  play(cluster, 10);
  EXPECT_FALSE(cluster.state().share_period().jobs.empty());
  EXPECT_GE(cluster.state().share_period().since, back - Duration::minutes(1));
}

TEST(CoreRounds, ALiveClusterChangesBetweenPoliciesThatKeepPeriods) {
  ScriptedCluster cluster({.policy = "gavel"});
  Submission dated = saving(cluster, 32);
  dated.request.deadline = cluster.now() + Duration::hours(12);
  const JobId promised = cluster.run(dated);
  const JobId other = cluster.submit(saving(cluster, 64));
  play(cluster, 10);
  EXPECT_EQ(cluster.state().share_period().jobs, (std::vector{promised, other}));
  ASSERT_TRUE(cluster.send(SetPolicy{policy_yaml("elasticflow")}).answer.status);
  EXPECT_TRUE(cluster.state().share_period().jobs.empty()) << "nothing was promised";
  play(cluster, 10);
  EXPECT_EQ(cluster.state().share_period().jobs, std::vector{promised});
  EXPECT_TRUE(cluster.state().share_period().had.empty());
  ASSERT_TRUE(cluster.send(SetPolicy{policy_yaml("gavel")}).answer.status);
  EXPECT_TRUE(cluster.state().share_period().jobs.empty());
  const Instant back = cluster.now();
  play(cluster, 10);
  EXPECT_EQ(cluster.state().share_period().jobs, (std::vector{promised, other}));
  EXPECT_GE(cluster.state().share_period().since, back);
}

TEST(CoreRounds, ADeadlineThatIsPromisedStaysSoUntilTheJobEnds) {
  ScriptedCluster cluster({.policy = "elasticflow"});
  Submission dated = saving(cluster, 32);
  dated.request.deadline = cluster.now() + Duration::hours(6);
  const JobId promised = cluster.run(dated);
  dated.request.deadline = cluster.now() + Duration::minutes(330);
  cluster.submit(dated);
  play(cluster, 20);
  EXPECT_EQ(cluster.state().share_period().jobs, std::vector{promised});
  EXPECT_EQ(cluster.phase(promised), JobPhase::kRunning);
  EXPECT_EQ(cluster.job(promised).attempt, 1u);
  cluster.end(promised);
  cluster.submit(saving(cluster, 32));
  play(cluster, 10);
  EXPECT_EQ(std::ranges::count(cluster.state().share_period().jobs, promised), 0);
}

}  // namespace
}  // namespace orrery

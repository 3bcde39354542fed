#include "scheduler/rounds/round_plan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/place/cluster_test.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

/// Nodes of eight H100 in one rack, and one of eight A100.
std::string h100_nodes_and_one_a100(int count) {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
      "dgx-h100, count: " +
      std::to_string(count) + "}, {type: dgx-a100-80g, count: 1}]\n");
}

/// A preemptible job of one node that has been left with so many hours.
JobRequest of_hours(const TestCluster& cluster, std::int64_t hours) {
  JobRequest job = cluster.job(8, Duration::hours(hours));
  job.checkpoint_interval = Duration::minutes(10);
  job.preemptible = true;
  return job;
}

/// A round in which the job with the least time left comes first.
class Round {
 public:
  explicit Round(TestCluster& cluster)
      : situation_(cluster.situation()), placers_(cluster.tree()) {}

  [[nodiscard]] Situation& situation() { return situation_; }

  /// Plans it for all jobs but `first`, and begins it.
  void begin(const std::vector<const WaitingJob*>& first = {}) {
    context_.emplace(situation_, policy_, PassKind::kFull, fleet_);
    StartSearch search(*context_, placers_);
    for (std::uint32_t i = 0; i < situation_.waiting.size(); ++i) {
      const WaitingJob& job = situation_.waiting[i];
      if (takes_turns(*job.request)) jobs_.push_back({job, i, std::nullopt});
    }
    for (std::uint32_t i = 0; i < situation_.running.size(); ++i) {
      const RunningJob& job = situation_.running[i];
      jobs_.push_back({as_waiting(job, situation_.now), i, job.gangs.front().option});
    }
    RoundPlan(*context_, search, shares_, jobs_).begin(first);
  }
  [[nodiscard]] const PassContext& context() const { return *context_; }
  [[nodiscard]] const PassResult& result() const { return context_->result; }

 private:
  Situation situation_;
  Policy policy_ = *policy_named("srtf:preemption=rounds");
  PassPlacers placers_;
  PassFleet fleet_;
  ThroughputShares shares_;
  std::vector<RoundJob> jobs_;
  std::optional<PassContext> context_;
};

TEST(RoundPlan, FreeDevicesAreCountedByType) {
  TestCluster cluster(h100_nodes_and_one_a100(2));
  std::vector<std::uint32_t> free(2);
  free[cluster.gang(8, "h100").type.value()] = 16;
  free[cluster.gang(8, "a100").type.value()] = 8;
  EXPECT_EQ(free_by_type(cluster.fleet().view()), free);
  cluster.fleet().set_free(NodeId(0), 0x0f);
  free[cluster.fleet().topology().group(NodeId(0)).type.value()] -= 4;
  EXPECT_EQ(free_by_type(cluster.fleet().view()), free);
}

TEST(RoundPlan, ATurnOnFreeDevicesStartsAtOnce) {
  TestCluster cluster(h100_nodes_and_one_a100(1));
  cluster.submit(of_hours(cluster, 10));
  const JobId first = cluster.submit(of_hours(cluster, 1));
  Round round(cluster);
  round.begin();
  ASSERT_EQ(round.result().decisions.size(), 1u);
  EXPECT_EQ(std::get<StartJob>(round.result().decisions.front()).job, first);
  EXPECT_TRUE(round.result().reservations.empty());
}

TEST(RoundPlan, AJobWhoseTurnEndsLeavesForTheOneThatReservesItsDevices) {
  TestCluster cluster(h100_nodes_and_one_a100(1));
  const JobId runs = cluster.submit(of_hours(cluster, 10));
  cluster.pass("srtf");
  const JobId waits = cluster.submit(of_hours(cluster, 1));
  Round round(cluster);
  round.begin();
  ASSERT_EQ(round.result().decisions.size(), 1u);
  const auto& leaves = std::get<PreemptJob>(round.result().decisions.front());
  EXPECT_EQ(leaves.job, runs);
  EXPECT_EQ(leaves.in_favour_of, waits);
  ASSERT_EQ(round.result().reservations.size(), 1u);
  const Reservation& kept = round.result().reservations.front();
  EXPECT_EQ(kept.job, waits);
  EXPECT_EQ(kept.start, cluster.now());
  EXPECT_EQ(kept.gangs.front().allocation, cluster.find(runs)->gangs.front().allocation);
  EXPECT_TRUE(round.context().is_passed_over(waits));
  EXPECT_TRUE(round.context().is_decided(0));
}

TEST(RoundPlan, AJobWhoseTurnGoesOnKeepsItsDevices) {
  TestCluster cluster(h100_nodes_and_one_a100(1));
  cluster.submit(of_hours(cluster, 1));
  cluster.pass("srtf");
  cluster.submit(of_hours(cluster, 10));
  Round round(cluster);
  round.begin();
  EXPECT_TRUE(round.result().decisions.empty());
  EXPECT_TRUE(round.result().reservations.empty());
}

TEST(RoundPlan, AJobWithoutTurnsGetsDevicesAsTurnsEnd) {
  TestCluster cluster(h100_nodes_and_one_a100(1));
  const JobId runs = cluster.submit(of_hours(cluster, 1));
  cluster.pass("srtf");
  JobRequest service = cluster.job(8);
  service.kind = JobKind::kServe;
  const JobId serves = cluster.submit(service);
  Round round(cluster);
  round.begin({&round.situation().waiting.front()});
  ASSERT_EQ(round.result().decisions.size(), 1u);
  const auto& leaves = std::get<PreemptJob>(round.result().decisions.front());
  EXPECT_EQ(leaves.job, runs);
  EXPECT_EQ(leaves.in_favour_of, serves);
  ASSERT_EQ(round.result().reservations.size(), 1u);
  EXPECT_EQ(round.result().reservations.front().job, serves);
}

TEST(RoundPlan, JobsThatLeaveDrawPowerUntilTheyHaveLeft) {
  TestCluster cluster(powered_site());
  for (int node = 0; node < 6; ++node) cluster.submit(of_hours(cluster, 10));
  cluster.pass("srtf");
  ASSERT_EQ(cluster.running().size(), 6u);
  const PowerTree tree(cluster.fleet().topology());
  const PowerCaps caps(tree);
  PowerBudget budget(tree);
  for (RunningJob& job : cluster.running()) {
    job.terms.front().draw = Watts(500);
    budget.add(draws_of_gang(tree, job.gangs.front(), Watts(500)));
  }
  cluster.submit(of_hours(cluster, 1));
  Round round(cluster);
  round.situation().power = &budget;
  round.situation().caps = &caps;
  round.begin();
  ASSERT_EQ(round.result().decisions.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<PreemptJob>(round.result().decisions.front()));
  EXPECT_EQ(round.context().power.budget(), budget);
}

}  // namespace
}  // namespace orrery

#include "control/jobs/decision_check.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class DecisionCheckTest : public ::testing::Test {
 protected:
  template <class Decision>
  [[nodiscard]] static std::string why_stale(const ScriptedCluster& cluster,
                                             const Decision& decision) {
    return DecisionCheck(cluster.state(), cluster.now())
        .why_stale(decision, cluster.state().fleet().view());
  }
  template <class Decision>
  [[nodiscard]] std::string why_stale(const Decision& decision) const {
    return why_stale(cluster_, decision);
  }
  /// A start of a job of eight devices on one node.
  [[nodiscard]] static StartJob start_on(NodeId node, JobId job) {
    PlacedGang gang;
    gang.allocation.ranks = {{node, 0xff}};
    return {.job = job, .gangs = {gang}, .terms = {{}}};
  }
  /// A running job goes on with these devices.
  [[nodiscard]] ResizeJob resize(JobId job, std::vector<NodeDevices> ranks) const {
    const RunningJob& run = cluster_.state().running(job);
    ResizeJob resize{.job = job, .gangs = run.gangs, .terms = run.terms};
    resize.gangs.front().allocation.ranks = std::move(ranks);
    return resize;
  }

  ScriptedCluster cluster_;
};

TEST_F(DecisionCheckTest, AStartFitsOnFreeDevicesOfReadyNodes) {
  const JobId runs = cluster_.run(cluster_.job(8));
  const NodeId taken = cluster_.nodes(runs).front();
  ASSERT_EQ(taken, NodeId(0));
  const JobId waits = cluster_.submit(cluster_.job(8));
  EXPECT_EQ(why_stale(start_on(NodeId(1), waits)), "");
  EXPECT_EQ(why_stale(start_on(taken, waits)), "devices are not free any more");
  cluster_.send(NodeHeard{NodeId(1), NodeHealth::kSuspect, 2});
  EXPECT_EQ(why_stale(start_on(NodeId(1), waits)), "a node is not ready any more");
  EXPECT_EQ(why_stale(start_on(NodeId(2), runs)), "it does not wait any more");
  EXPECT_EQ(why_stale(start_on(NodeId(2), JobId(99))), "it does not wait any more");
  cluster_.send(CancelJob{waits});
  EXPECT_EQ(why_stale(start_on(NodeId(2), waits)), "it does not wait any more");
}

TEST_F(DecisionCheckTest, AStartFitsWithinTheQuota) {
  ScriptedOptions options;
  options.tenants = "- {name: default, limit: {h100: 8}}\n";
  options.policy = "capacity";
  ScriptedCluster cluster(options);
  const JobId first = cluster.submit(cluster.job(8));
  const JobId second = cluster.submit(cluster.job(8));
  EXPECT_EQ(why_stale(cluster, start_on(NodeId(3), second)), "");
  cluster.tick();
  ASSERT_EQ(cluster.phase(first), JobPhase::kStarting);
  EXPECT_EQ(why_stale(cluster, start_on(NodeId(3), second)), "beyond the quota by now");
}

TEST_F(DecisionCheckTest, AStartFitsBelowThePowerLimit) {
  ScriptedOptions options;
  options.power = PowerLimits::kAsBuilt;
  ScriptedCluster cluster(options);
  const JobId waits = cluster.submit(cluster.job(8));
  StartJob start = start_on(NodeId(0), waits);
  start.terms.front().draw = Watts(700);
  EXPECT_EQ(why_stale(cluster, start), "");
  ASSERT_TRUE(cluster.send(SetPowerCap{PowerDomainId(0), Watts(1)}).answer.status);
  EXPECT_EQ(why_stale(cluster, start), "above a power limit by now");
}

TEST_F(DecisionCheckTest, AResizeMayKeepItsOwnDevicesAndTakeFreeOnes) {
  const JobId id = cluster_.start(cluster_.elastic_job(8, 16));
  const JobId other = cluster_.run(cluster_.job(8));
  ASSERT_EQ(cluster_.nodes(id), (std::vector{NodeId(0), NodeId(1)}));
  ASSERT_EQ(cluster_.nodes(other), std::vector{NodeId(2)});
  const ResizeJob moved = resize(id, {{NodeId(1), 0xff}, {NodeId(3), 0xff}});
  EXPECT_EQ(why_stale(moved), "it does not run") << "its ranks are not up";
  cluster_.up(id);
  EXPECT_EQ(why_stale(moved), "");
  EXPECT_EQ(why_stale(resize(id, {{NodeId(1), 0xff}, {NodeId(2), 0xff}})),
            "devices are not free any more");
  cluster_.send(DrainNode{NodeId(3)});
  EXPECT_EQ(why_stale(moved), "a node is not ready any more");
}

TEST_F(DecisionCheckTest, DevicesAreKeptFromAJobThatHasEnded) {
  const JobId runs = cluster_.run(cluster_.elastic_job(8, 16));
  const JobId other = cluster_.submit(cluster_.job(32));
  ResizeJob smaller = resize(runs, {{NodeId(0), 0xff}});
  smaller.in_favour_of = other;
  const auto why_kept = [&](JobId in_favour_of) {
    return DecisionCheck(cluster_.state(), cluster_.now()).why_kept(runs, in_favour_of, {});
  };
  EXPECT_EQ(why_kept(other), "");
  EXPECT_EQ(why_stale(smaller), "");
  cluster_.send(CancelJob{other});
  const std::string why = "the job that was to have its devices has ended";
  EXPECT_EQ(why_kept(other), why);
  EXPECT_EQ(why_stale(smaller), why);
  EXPECT_EQ(why_kept(JobId()), "") << "because of a power limit";
  // A full pass decided before the job was cancelled.
  cluster_.decide({PreemptJob{runs, other, 0}, smaller});
  EXPECT_EQ(cluster_.count<DecisionDropped>(), 2U);
  EXPECT_EQ(cluster_.phase(runs), JobPhase::kRunning);
  cluster_.send(ArchiveJobs{{other}});
  cluster_.decide({PreemptJob{runs, other, 0}});
  EXPECT_EQ(cluster_.phase(runs), JobPhase::kRunning);
  cluster_.decide({PreemptJob{runs, JobId(), 0}});
  EXPECT_EQ(cluster_.phase(runs), JobPhase::kStopping);
}

TEST_F(DecisionCheckTest, AClockIsSetOnlyIfTheGangRunsAsThePassSawIt) {
  const JobId id = cluster_.start(cluster_.job(8));
  const Instant started = cluster_.now();
  SetClock clock{id, 0, cluster_.state().running(id).terms.front()};
  clock.terms.clock = 0.8;
  const auto may_set = [&](const SetClock& set, Instant looked_at) {
    return DecisionCheck(cluster_.state(), cluster_.now()).may_set(set, looked_at);
  };
  EXPECT_TRUE(may_set(clock, started));
  EXPECT_FALSE(may_set(clock, started - Duration::nanoseconds(1)));
  SetClock other = clock;
  other.gang = 1;
  EXPECT_FALSE(may_set(other, started)) << "it has one gang";
  other = clock;
  other.job = JobId(99);
  EXPECT_FALSE(may_set(other, started));
  cluster_.send(CancelJob{id});
  EXPECT_FALSE(may_set(clock, cluster_.now())) << "it stops";
}

}  // namespace
}  // namespace orrery

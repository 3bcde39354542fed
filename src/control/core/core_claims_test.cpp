// control/core/core_claims_test.cpp - how far a job can affect a fleet by accusing its nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/scripted_cluster_test.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

class CoreClaimsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kNodes = 4;

  /// Reports what the agent of a job's first node sends when a rank there writes `wrong`.
  void accuse(JobId id) {
    const NodeFault claim{.node = cluster_.nodes(id).front(),
                          .layer = FaultLayer::kAccelerator,
                          .evidence = "wrong",
                          .repair = true,
                          .stops_jobs = false,
                          .claimed_by = id,
                          .attempt = cluster_.job(id).attempt};
    cluster_.send(claim);
  }
  /// Reports the end of that rank.
  void end(JobId id, std::uint32_t attempt, NodeId node) {
    cluster_.send(RanksEnded{id,
                             attempt,
                             ExitKind::kClaim,
                             {FaultLayer::kAccelerator, node, "exit status 1 of rank 0"},
                             {},
                             true});
  }
  /// Lets one attempt of a job accuse its node and end.
  void lie(JobId id) {
    const std::uint32_t attempt = cluster_.job(id).attempt;
    const NodeId node = cluster_.nodes(id).front();
    accuse(id);
    end(id, attempt, node);
  }
  void mend(NodeId node) { cluster_.send(NodeRepaired{node}); }
  [[nodiscard]] std::vector<NodeId> out() const {
    std::vector<NodeId> nodes;
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      if (cluster_.health(NodeId(n)) != NodeHealth::kReady) nodes.emplace_back(n);
    }
    return nodes;
  }
  /// Advances time until the job is up again, or has ended.
  void run_again(JobId id) {
    for (int i = 0; i < 100 && cluster_.phase(id) != JobPhase::kStarting; ++i) {
      if (ended(cluster_.phase(id))) return;
      cluster_.wait(Duration::minutes(1));
    }
    cluster_.up(id);
  }

  ScriptedCluster cluster_;
};

TEST_F(CoreClaimsTest, ATrueOneTakesItsNodeOutAndTheJobStartsElsewhere) {
  const JobId id = cluster_.run(cluster_.job(8));
  const NodeId node = cluster_.nodes(id).front();
  lie(id);
  EXPECT_EQ(cluster_.health(node), NodeHealth::kRepairing);
  EXPECT_EQ(cluster_.state().node(node).out_why, "wrong");
  EXPECT_EQ(cluster_.job(id).usage.program_faults, 0u);
  EXPECT_EQ(cluster_.job(id).usage.faults, 1u);
  run_again(id);
  EXPECT_NE(cluster_.nodes(id).front(), node);
  // The burn-in fails: the node stays out, and the job may still make claims.
  cluster_.send(NodeFault{node, FaultLayer::kHost, "the burn-in failed", true, false});
  EXPECT_EQ(cluster_.state().claims().front().verdict, ClaimVerdict::kConfirmed);
  EXPECT_EQ(cluster_.state().node(node).out_why, "the burn-in failed");
  const NodeId other = cluster_.nodes(id).front();
  lie(id);
  EXPECT_EQ(out(), (std::vector{node, other}));
  EXPECT_EQ(cluster_.job(id).usage.program_faults, 0u);
}

TEST_F(CoreClaimsTest, OfOneJobCostOneNodeAndFromTheSecondOnItsRestarts) {
  Submission hostile = cluster_.job(8);
  hostile.restart_max = 1;
  const JobId id = cluster_.run(hostile);
  const NodeId first = cluster_.nodes(id).front();
  lie(id);
  EXPECT_EQ(out(), std::vector{first});
  run_again(id);
  lie(id);
  EXPECT_TRUE(out().empty()) << "the second claim mends what the first one did";
  EXPECT_EQ(cluster_.job(id).usage.program_faults, 1u);
  run_again(id);
  lie(id);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kFailed);
  EXPECT_EQ(cluster_.job(id).blame.layer, FaultLayer::kProgram);
  EXPECT_TRUE(out().empty());
}

TEST_F(CoreClaimsTest, OfOneAttemptCountOnceInWhateverOrderTheyCome) {
  const JobId id = cluster_.run(cluster_.job(8));
  const NodeId node = cluster_.nodes(id).front();
  end(id, 1, node);  // before the agent's report
  EXPECT_EQ(cluster_.job(id).usage.faults, 1u);
  EXPECT_TRUE(out().empty());
  const NodeFault late{node, FaultLayer::kAccelerator, "wrong", true, false, id, 1};
  cluster_.send(late);
  EXPECT_EQ(out(), std::vector{node});
  cluster_.send(late);
  EXPECT_EQ(cluster_.count<NodeAccused>(), 0u);
  EXPECT_EQ(cluster_.count<NodeChanged>(), 0u);
}

TEST_F(CoreClaimsTest, AreJudgedTheSameAfterARestartOfTheController) {
  Submission hostile = cluster_.job(8);
  hostile.restart_max = 5;
  const JobId id = cluster_.run(hostile);
  lie(id);
  run_again(id);
  lie(id);
  State again(cluster_.setup());
  ASSERT_TRUE(restore(again, snapshot_of(cluster_.state())));
  EXPECT_EQ(digest_of(again), digest_of(cluster_.state()));
  ASSERT_EQ(again.claims().size(), 2u);
  EXPECT_EQ(again.claims()[0].verdict, ClaimVerdict::kCleared);
  EXPECT_EQ(again.claims()[1].verdict, ClaimVerdict::kRefused);
}

TEST_F(CoreClaimsTest, OfATenantWithManyJobsCostOneNodeAtATime) {
  std::vector<JobId> jobs;
  for (int i = 0; i < 10; ++i) {
    Submission hostile = cluster_.job(8);
    hostile.restart_max = 3;
    jobs.push_back(cluster_.submit(hostile));
  }
  cluster_.tick();
  for (int round = 0; round < 60; ++round) {
    for (const JobId id : jobs) {
      if (cluster_.phase(id) == JobPhase::kStarting) cluster_.up(id);
      if (cluster_.phase(id) != JobPhase::kRunning) continue;
      lie(id);
      ASSERT_LE(out().size(), 1u) << "in round " << round;
    }
    if (round % 5 == 0) {
      for (const NodeId node : out()) mend(node);
    }
    cluster_.wait(Duration::minutes(10));
  }
  for (const JobId id : jobs) EXPECT_EQ(cluster_.phase(id), JobPhase::kFailed);
  const auto claims = cluster_.state().claims();
  const auto cleared = std::count_if(claims.begin(), claims.end(), [](const Claim& claim) {
    return claim.verdict == ClaimVerdict::kCleared;
  });
  EXPECT_LE(cleared, 3) << "more take no node out within a day";
  EXPECT_LE(claims.size(), 20u);
}

TEST(CoreClaimsTenantsTest, OfSubTenantsCountAsOnesOfTheTenantAboveThem) {
  ScriptedCluster cluster(
      {.tenants = "- {name: a}\n- {name: a/x}\n- {name: a/y}\n- {name: b}\n- {name: default}\n"});
  const auto accuse_as = [&](const std::string& tenant) {
    Submission hostile = cluster.job(8);
    hostile.request.tenant = *cluster.state().tenants().find(tenant);
    const JobId id = cluster.run(hostile);
    const NodeId node = cluster.nodes(id).front();
    cluster.send(NodeFault{node, FaultLayer::kAccelerator, "wrong", true, false, id, 1});
    return cluster.health(node);
  };
  EXPECT_NE(accuse_as("a/x"), NodeHealth::kReady);
  EXPECT_EQ(accuse_as("a/y"), NodeHealth::kReady) << "a has one node out of service already";
  EXPECT_NE(accuse_as("b"), NodeHealth::kReady) << "another tenant of the top level is believed";
}

TEST_F(CoreClaimsTest, OfAnotherJobOnTheNodeEndNothingOfIt) {
  const JobId quiet = cluster_.run(cluster_.job(4));
  const JobId id = cluster_.run(cluster_.job(4));
  ASSERT_EQ(cluster_.nodes(quiet), cluster_.nodes(id));
  lie(id);
  EXPECT_EQ(cluster_.phase(quiet), JobPhase::kRunning);
  EXPECT_EQ(out(), cluster_.nodes(quiet));
}

TEST_F(CoreClaimsTest, ByWhatAProgramWroteExcuseItOnceADayAndTakeNoNodeOut) {
  Submission noisy = cluster_.job(8);
  noisy.restart_max = 9;
  const JobId id = cluster_.run(noisy);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    end(id, attempt, cluster_.nodes(id).front());
    EXPECT_EQ(cluster_.job(id).usage.faults, 1u);
    EXPECT_EQ(cluster_.job(id).usage.program_faults, attempt - 1);
    EXPECT_TRUE(out().empty());
    run_again(id);
  }
  cluster_.wait(Duration::hours(25));
  end(id, 4, cluster_.nodes(id).front());
  EXPECT_EQ(cluster_.job(id).usage.faults, 2u);
}

TEST_F(CoreClaimsTest, OfJobsThatNeverWereAreRefused) {
  const NodeFault claim{NodeId(0), FaultLayer::kAccelerator, "wrong", true, false, JobId(7), 1};
  EXPECT_FALSE(cluster_.send(claim).answer.status);
  EXPECT_TRUE(out().empty());
}

}  // namespace
}  // namespace orrery

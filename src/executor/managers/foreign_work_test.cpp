// executor/managers/foreign_work_test.cpp - work of others on the nodes of a manager, and the bills
// of its holds.
#include "executor/managers/foreign_work.hpp"

#include <gtest/gtest.h>

#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

class ForeignWorkListTest : public HoldLinkTest {
 protected:
  /// Nodes with own agents, which a manager has, too.
  void begin_own(PoolUse use) {
    for (std::uint32_t n = 0; n < 4; ++n) cluster_.send(NodeJoined{NodeId(n), 7});
    begin({.use = use});
    wait(Duration::seconds(3));
  }
  void others(std::vector<std::uint32_t> nodes, std::optional<Duration> left) {
    std::vector<std::string> names;
    names.reserve(nodes.size());
    for (const std::uint32_t n : nodes) names.push_back(name(n));
    foreign_.push_back({.id = "17", .user = "ann", .nodes = std::move(names), .left = left});
  }
  [[nodiscard]] const NodeRecord::Foreign& foreign(std::uint32_t node) const {
    return cluster_.state().node(NodeId(node)).foreign;
  }
};

TEST_F(ForeignWorkListTest, TakesSharedNodesUntilItIsDone) {
  begin_own(PoolUse::kShared);
  others({1, 2}, Duration::hours(1));
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kDrained);
  EXPECT_EQ(foreign(1).who, "ann (17) of slurm");
  const Instant until = foreign(1).until;
  wait(Duration::minutes(1));
  foreign_[0].left = Duration::minutes(59) - Duration::seconds(2);
  wait(Duration::seconds(3));
  EXPECT_EQ(foreign(1).until, until) << "whole seconds are no news";
  foreign_.clear();
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(1)), NodeHealth::kReady);
  EXPECT_EQ(cluster_.health(NodeId(2)), NodeHealth::kReady);
  EXPECT_TRUE(asked<EnsureHold>().empty());
}

TEST_F(ForeignWorkListTest, SaysNothingInAListThatDoesNotShowIt) {
  begin_own(PoolUse::kShared);
  others({1}, {});
  wait(Duration::seconds(3));
  ASSERT_EQ(foreign(1).claim, ForeignClaim::kTaken);
  EXPECT_EQ(foreign(1).until, Instant::max());
  complete_ = false;
  foreign_.clear();
  wait(Duration::seconds(10));
  EXPECT_EQ(foreign(1).claim, ForeignClaim::kTaken);
}

TEST_F(ForeignWorkListTest, ThatNoListShowsClosesSharedNodesUntilTheNextOne) {
  begin_own(PoolUse::kShared);
  const JobId job = submit(8);
  cluster_.up(job);
  const std::uint32_t busy = cluster_.nodes(job).at(0).value();
  const std::uint32_t idle = busy == 0 ? 1 : 0;
  complete_ = false;
  trouble_ = "squeue: Unable to contact slurm controller";
  wait(Duration::seconds(11));
  EXPECT_EQ(cluster_.health(NodeId(idle)), NodeHealth::kReady);
  wait(Duration::seconds(8));
  EXPECT_EQ(cluster_.health(NodeId(idle)), NodeHealth::kDrained);
  EXPECT_EQ(cluster_.health(NodeId(busy)), NodeHealth::kDraining);
  EXPECT_EQ(cluster_.phase(job), JobPhase::kRunning);
  EXPECT_EQ(foreign_nodes(link_->pools()[0], cluster_.state()).count, 0u) << "nobody is known";
  const JobId next = submit(8);
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.phase(next), JobPhase::kQueued);
  complete_ = true;
  trouble_.clear();
  others({idle}, {});
  wait(Duration::seconds(3));
  EXPECT_EQ(cluster_.health(NodeId(busy)), NodeHealth::kReady);
  EXPECT_EQ(foreign(idle).who, "ann (17) of slurm");
  EXPECT_EQ(cluster_.health(NodeId(idle)), NodeHealth::kDrained);
}

TEST_F(ForeignWorkListTest, ThatNoListShowsClosesSharedNodesAlsoOfAManagerThatNeverAnswers) {
  begin_own(PoolUse::kShared);
  silent_ = true;
  wait(Duration::seconds(20));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kDrained);
}

TEST_F(ForeignWorkListTest, ThatNoListShowsChangesNothingOnOtherNodes) {
  begin_own(PoolUse::kOwned);
  complete_ = false;
  wait(Duration::minutes(1));
  EXPECT_EQ(cluster_.health(NodeId(0)), NodeHealth::kReady);
}

TEST_F(ForeignWorkListTest, IsAFaultOfANodeThatIsTheClustersOwnAndEndsNothing) {
  begin_own(PoolUse::kOwned);
  const JobId job = submit(8);
  cluster_.up(job);
  const std::uint32_t node = cluster_.nodes(job).at(0).value();
  others({node}, Duration::hours(1));
  wait(Duration::seconds(30));
  EXPECT_EQ(cluster_.phase(job), JobPhase::kRunning);
  EXPECT_EQ(cluster_.health(NodeId(node)), NodeHealth::kReady);
  EXPECT_EQ(cluster_.state().node(NodeId(node)).faults.size(), 1u) << "one fault, not one a list";
  EXPECT_EQ(foreign(node).claim, ForeignClaim::kNoted);
}

TEST_F(ForeignWorkListTest, IsNotedOnNodesThatAreLent) {
  begin();
  others({2, 3}, Duration::hours(1));
  wait(Duration::minutes(1));
  EXPECT_EQ(foreign(2).claim, ForeignClaim::kNoted);
  EXPECT_EQ(cluster_.health(NodeId(2)), NodeHealth::kAbsent);
  const ForeignNodes found = foreign_nodes(link_->pools()[0], cluster_.state());
  EXPECT_EQ(found.count, 2u);
  EXPECT_LT(found.first_free, cluster_.now() + Duration::hours(1) + Duration::seconds(1));
}

TEST_F(ForeignWorkListTest, NamesWhoUsesANodeUpToThree) {
  begin_own(PoolUse::kShared);
  for (std::uint32_t n = 0; n < 5; ++n) others({1}, Duration::hours(n + 1));
  wait(Duration::seconds(3));
  EXPECT_EQ(foreign(1).who, "ann (17), ann (17), ann (17) of slurm and 2 more");
  EXPECT_GT(foreign(1).until, cluster_.now() + Duration::hours(4)) << "the last of them";
}

// --- Bills ---------------------------------------------------------------------------------------

class HoldBillTest : public HoldLinkTest {
 protected:
  HoldKey lend() {
    begin({.keep = 1});
    wait(Duration::seconds(3));
    const HoldKey key = only().key;
    run(key, "72", {name(0)});
    wait(Duration::seconds(3));
    return key;
  }
  void end_recorded(HoldPhase phase) {
    holds_[0].phase = phase;
    holds_[0].started = started_;
    holds_[0].ended = started_ + Duration::seconds(1234);
    wait(Duration::seconds(5));
  }
  [[nodiscard]] LentTotal total() const {
    const auto& totals = cluster_.state().bills().totals();
    return totals.contains("slurm") ? totals.at("slurm") : LentTotal();
  }
  Instant started_ = cluster_.now() - Duration::seconds(7);
};

TEST_F(HoldBillTest, IsTheManagersRecordOnceWhoeverReadsIt) {
  lend();
  end_recorded(HoldPhase::kEnded);
  EXPECT_EQ(total().holds, 1u);
  EXPECT_TRUE(cluster_.state().bills().open().empty());
  EXPECT_EQ(total().held, DeviceTime{Duration::seconds(1234).count_ns()});
  ++term_;
  begin();
  wait(Duration::seconds(10));
  EXPECT_EQ(total().holds, 1u) << "the next controller reads the same record";
}

TEST_F(HoldBillTest, OfAnEndWithoutProofIsTheSame) {
  lend();
  end_recorded(HoldPhase::kEndedDirty);
  EXPECT_EQ(total().held, DeviceTime{Duration::seconds(1234).count_ns()});
}

TEST_F(HoldBillTest, OfAHoldThatTheManagerForgotIsWhatControlSaw) {
  lend();
  wait(Duration::minutes(3));
  holds_.clear();
  wait(Duration::minutes(1));
  EXPECT_EQ(total().holds, 1u);
  const double seconds = static_cast<double>(total().held) / 1e9;
  EXPECT_GE(seconds, 178);
  EXPECT_LE(seconds, 185) << "up to the last list that showed it";
  EXPECT_TRUE(cluster_.state().bills().open().empty());
}

// Its pilot ends while no controller leads, and Slurm drops its record (MinJobAge).
TEST_F(HoldBillTest, OfAHoldThatIsGoneWhenAControllerComesBackEndsWithTheLog) {
  lend();
  wait(Duration::minutes(3));
  cluster_.send(SetSpare{NodeId(1), true});
  const Instant newest = cluster_.state().now();
  cluster_.wait(Duration::hours(12));
  ASSERT_EQ(cluster_.state().now(), newest);
  holds_.clear();
  ++term_;
  begin();
  wait(Duration::minutes(1));
  EXPECT_EQ(total().holds, 1u);
  const double seconds = static_cast<double>(total().held) / 1e9;
  EXPECT_GE(seconds, 178);
  EXPECT_LE(seconds, 185);
}

TEST_F(HoldBillTest, OfAHoldThatNeverRanIsNone) {
  begin({.keep = 1});
  wait(Duration::seconds(3));
  holds_.push_back({.key = only().key, .id = "72", .phase = HoldPhase::kEnded});
  wait(Duration::seconds(5));
  EXPECT_EQ(total().holds, 0u);
}

}  // namespace
}  // namespace orrery

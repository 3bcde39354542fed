#include "scheduler/replace/replacement.hpp"

#include <gtest/gtest.h>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// Sixteen nodes of 8 devices, and jobs on them.
class ReplacementTest : public testing::Test {
 protected:
  ReplacementTest() : policy_(*policy_named("fifo")) {}

  void set_health(NodeId node, NodeHealth health) {
    NodeState state = cluster_.fleet().view().node(node);
    state.health = health;
    cluster_.fleet().set_node(node, state);
  }

  JobId run(std::uint32_t devices) {
    const JobId id = cluster_.submit(cluster_.job(devices));
    (void)cluster_.pass("fifo");
    EXPECT_TRUE(cluster_.runs(id));
    return id;
  }

  /// A running job that may have 16 or 24 devices.
  JobId run_elastic() {
    JobRequest request = cluster_.job(24);
    request.roles[0].devices_min = 16;
    request.roles[0].options.push_back({cluster_.gang(16), 1, std::nullopt});
    const JobId id = cluster_.submit(request);
    (void)cluster_.pass("fifo");
    EXPECT_TRUE(cluster_.runs(id));
    return id;
  }

  static std::vector<NodeId> nodes(const PlacedGang& gang) {
    std::vector<NodeId> all;
    all.reserve(gang.allocation.ranks.size());
    for (const NodeDevices& at : gang.allocation.ranks) all.push_back(at.node);
    return all;
  }

  std::optional<WithReplacements<ResizeJob>> replace(JobId id, NodeId lost) {
    const Situation s = cluster_.situation();
    return resize_with_replacement({s, policy_, spares_}, *cluster_.find(id), lost);
  }

  TestCluster cluster_;
  Policy policy_;
  std::vector<NodeId> spares_;
};

TEST_F(ReplacementTest, TakesTheNearestSpareAndElseTheNearestFreeNode) {
  const JobId id = run(24);
  ASSERT_EQ(nodes(cluster_.find(id)->gangs[0]), (std::vector{NodeId(0), NodeId(1), NodeId(2)}));
  set_health(NodeId(1), NodeHealth::kLost);
  const auto near = replace(id, NodeId(1));
  ASSERT_TRUE(near);
  EXPECT_EQ(nodes(near->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(3)}));
  EXPECT_TRUE(near->spares.empty());
  EXPECT_EQ(near->replaced, 1u);

  for (const std::uint32_t spare : {12U, 9U, 14U}) {
    set_health(NodeId(spare), NodeHealth::kDrained);
    spares_.push_back(NodeId(spare));
  }
  const auto with_spare = replace(id, NodeId(1));
  ASSERT_TRUE(with_spare);
  EXPECT_EQ(nodes(with_spare->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(9)}));
  ASSERT_EQ(with_spare->spares.size(), 1u);
  EXPECT_EQ(with_spare->spares[0].lost, NodeId(1));
  EXPECT_EQ(with_spare->spares[0].spare, NodeId(9));
  EXPECT_EQ(cluster_.fleet().view().node(NodeId(9)).health, NodeHealth::kDrained)
      << "a question changes nothing";
}

TEST_F(ReplacementTest, LeavesNodesThatCloseOrAreTakenOrAreNotReady) {
  const JobId id = run(24);
  cluster_.close(NodeId(3), Duration::minutes(30));
  set_health(NodeId(4), NodeHealth::kDrained);
  const JobId other = run(8);
  ASSERT_EQ(nodes(cluster_.find(other)->gangs[0]).size(), 1u);
  const NodeId taken = nodes(cluster_.find(other)->gangs[0])[0];
  const auto found = replace(id, NodeId(1));
  ASSERT_TRUE(found);
  const std::vector<NodeId> after = nodes(found->decision.gangs[0]);
  for (const NodeId never : {NodeId(1), NodeId(3), NodeId(4), taken}) {
    EXPECT_EQ(std::count(after.begin(), after.end(), never), 0) << never.value();
  }
}

TEST_F(ReplacementTest, LeavesNodesThatAreReservedAndSparesThatClose) {
  const JobId id = run(24);
  cluster_.close(NodeId(9), Duration::minutes(30));
  for (const std::uint32_t spare : {9U, 12U}) {
    set_health(NodeId(spare), NodeHealth::kDrained);
    spares_.push_back(NodeId(spare));
  }
  const auto spare = replace(id, NodeId(1));
  ASSERT_TRUE(spare);
  EXPECT_EQ(nodes(spare->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(12)}));

  spares_.clear();
  Situation s = cluster_.situation();
  Reservation reserved{.job = JobId(7), .start = s.now};
  reserved.gangs.push_back({.allocation = {.ranks = {{NodeId(3), 0xff}}}});
  s.reserved = {&reserved, 1};
  const auto free = resize_with_replacement({s, policy_, spares_}, *cluster_.find(id), NodeId(1));
  ASSERT_TRUE(free);
  EXPECT_EQ(nodes(free->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(4)}));
  reserved.start = s.now + Duration::hours(1);
  const auto early = resize_with_replacement({s, policy_, spares_}, *cluster_.find(id), NodeId(1));
  ASSERT_TRUE(early);
  EXPECT_EQ(nodes(early->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(3)}));
}

TEST_F(ReplacementTest, LeavesNodesWhoseHostIsFull) {
  JobRequest request = cluster_.job(24);
  GangRequest& gang = request.roles[0].options[0].gang;
  gang.host.memory = 1024;
  const JobId id = cluster_.submit(request);
  (void)cluster_.pass("fifo");
  ASSERT_TRUE(cluster_.runs(id));
  NodeState full = cluster_.fleet().view().node(NodeId(3));
  full.used_memory = cluster_.fleet().topology().group(NodeId(3)).host.memory - 1024;
  cluster_.fleet().set_node(NodeId(3), full);
  const auto found = replace(id, NodeId(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(nodes(found->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(4)}));
}

TEST_F(ReplacementTest, KeepsThePlacementRulesOfTheGang) {
  JobRequest request = cluster_.job(24);
  request.roles[0].options[0].gang.required = TopologyLevel::kRack;
  const JobId id = cluster_.submit(request);
  (void)cluster_.pass("fifo");
  ASSERT_TRUE(cluster_.runs(id));
  const auto in_rack = replace(id, NodeId(1));
  ASSERT_TRUE(in_rack);
  EXPECT_EQ(nodes(in_rack->decision.gangs[0]), (std::vector{NodeId(0), NodeId(2), NodeId(3)}));
  set_health(NodeId(3), NodeHealth::kLost);
  EXPECT_FALSE(replace(id, NodeId(1))) << "the rack has no other node";
}

TEST_F(ReplacementTest, AnElasticJobShrinksToTheLargestSizeThatFits) {
  const JobId id = run_elastic();
  const Situation s = cluster_.situation();
  const RunningJob& job = *cluster_.find(id);
  const auto smaller = resize_without({s, policy_, {}}, job, NodeId(0));
  ASSERT_TRUE(smaller);
  EXPECT_EQ(nodes(smaller->gangs[0]), (std::vector{NodeId(1), NodeId(2)}));
  EXPECT_EQ(smaller->gangs[0].option, 1u);
  EXPECT_EQ(smaller->terms.size(), 1u);
  const JobId rigid = run(16);
  const NodeId gone = nodes(cluster_.find(rigid)->gangs[0])[0];
  const Situation later = cluster_.situation();
  EXPECT_FALSE(resize_without({later, policy_, {}}, *cluster_.find(rigid), gone));
}

TEST_F(ReplacementTest, ARestartReplacesTheNodesThatAreMissing) {
  const JobId id = run(24);
  const std::vector<PlacedGang> gangs = cluster_.find(id)->gangs;
  cluster_.stop(id);
  set_health(NodeId(0), NodeHealth::kLost);
  set_health(NodeId(2), NodeHealth::kLost);
  set_health(NodeId(8), NodeHealth::kDrained);
  spares_ = {NodeId(8)};
  const Situation s = cluster_.situation();
  ASSERT_EQ(s.waiting.size(), 1u);
  const auto again = restart_in_place({s, policy_, spares_}, s.waiting[0], gangs);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->replaced, 2u);
  ASSERT_EQ(again->spares.size(), 1u);
  EXPECT_EQ(again->spares[0].spare, NodeId(8));
  const std::vector<NodeId> after = nodes(again->decision.gangs[0]);
  EXPECT_TRUE(std::is_sorted(after.begin(), after.end()));
  EXPECT_EQ(std::count(after.begin(), after.end(), NodeId(1)), 1) << "a ready node stays";
  EXPECT_EQ(std::count(after.begin(), after.end(), NodeId(8)), 1);
  EXPECT_EQ(again->decision.expected, Duration::hours(1));

  FleetOverlay fleet(s.fleet);
  make_ready(fleet, again->spares);
  EXPECT_EQ(fleet.view().node(NodeId(8)).health, NodeHealth::kReady);
  EXPECT_EQ(s.fleet.node(NodeId(8)).health, NodeHealth::kDrained);
}

}  // namespace
}  // namespace orrery

#include "scheduler/power/power_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/fleet.hpp"
#include "scheduler/power/power_test.hpp"
#include "scheduler/price/slowed_text.hpp"

namespace orrery {
namespace {

constexpr Milliwatts kKilowatt = 1'000'000;

class PowerBudgetTest : public testing::Test {
 protected:
  PowerDomainId domain(PowerKind kind, int which = 0) const {
    return power_domain(topology_, kind, which);
  }
  DomainId rack(std::uint32_t node) const { return topology_.place(NodeId(node)).rack; }
  static std::vector<NodeDraw> kilowatts(std::uint32_t node, Milliwatts draw) {
    return {{NodeId(node), draw * kKilowatt}};
  }

  Topology topology_ = built(powered_site());
  PowerTree tree_{topology_};
  PowerCaps caps_{tree_};
  PowerBudget budget_{tree_};
};

TEST_F(PowerBudgetTest, AFleetWithoutWorkPlansTheIdleDrawOfItsNodes) {
  const Watts idle = watts_of(tree_.idle(NodeId(0)));
  EXPECT_EQ(idle, Watts(2000));
  EXPECT_EQ(budget_.planned(topology_.power_of(rack(0))), 2 * idle);
  EXPECT_EQ(budget_.planned(domain(PowerKind::kRow, 0)), 4 * idle);
  EXPECT_EQ(budget_.planned(domain(PowerKind::kCoolingLoop, 1)), 2 * idle);
  EXPECT_EQ(budget_.planned(domain(PowerKind::kUps)), 6 * idle);
  EXPECT_TRUE(tree_.assumptions().empty());
}

TEST_F(PowerBudgetTest, ASiteCapAndFeedsCountAtTheMeter) {
  const Watts idle = watts_of(tree_.idle(NodeId(0)));
  for (const PowerKind kind : {PowerKind::kSiteCap, PowerKind::kFeeds}) {
    EXPECT_NEAR(budget_.planned(domain(kind)).value(), (6 * idle.value() + 2200) * 1.25, 1e-6);
  }
  // 100 kW at the meter are 80 kW of machines, of which the storage takes 2.2.
  EXPECT_EQ(caps_.room(domain(PowerKind::kSiteCap)), 80 * kKilowatt - 2'200'000);
  EXPECT_EQ(caps_.room(domain(PowerKind::kUps)), 60 * kKilowatt);
}

TEST_F(PowerBudgetTest, APathIsTheRackItsWayUpAndItsLoop) {
  const auto path = tree_.path(rack(4));
  const std::vector<PowerDomainId> expected{
      topology_.power_of(rack(4)), domain(PowerKind::kRow, 1),  domain(PowerKind::kUps),
      domain(PowerKind::kFeeds),   domain(PowerKind::kSiteCap), domain(PowerKind::kCoolingLoop, 1)};
  EXPECT_TRUE(std::equal(path.begin(), path.end(), expected.begin(), expected.end()));
}

TEST_F(PowerBudgetTest, AStartThatDoesNotFitIsRefusedByTheDomainThatLacksMost) {
  // The third rack: 25 kW of its own, 30 kW of cooling; the row has 45.
  const auto missing = budget_.try_add(caps_, kilowatts(4, 30));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->domain, topology_.power_of(rack(4)));
  EXPECT_EQ(missing->missing, 30 * kKilowatt + 2 * tree_.idle(NodeId(4)) - 25 * kKilowatt);
  EXPECT_EQ(budget_, PowerBudget(tree_));
  EXPECT_FALSE(budget_.try_add(caps_, kilowatts(4, 30 - missing->missing / kKilowatt - 1)));
}

TEST_F(PowerBudgetTest, ExactlyTheHeadroomFitsAndAMilliwattMoreDoesNot) {
  const PowerHeadroom room = budget_.headroom(caps_, rack(0));
  EXPECT_EQ(room.binding, domain(PowerKind::kCoolingLoop, 0));
  EXPECT_EQ(room.free, 40 * kKilowatt - 4 * tree_.idle(NodeId(0)));
  const auto over = budget_.check(caps_, std::vector<NodeDraw>{{NodeId(0), room.free + 1}});
  ASSERT_TRUE(over);
  EXPECT_EQ(over->domain, room.binding);
  EXPECT_EQ(over->missing, 1);
  EXPECT_FALSE(budget_.try_add(caps_, std::vector<NodeDraw>{{NodeId(0), room.free}}));
  EXPECT_EQ(budget_.headroom(caps_, rack(0)).free, 0);
}

TEST_F(PowerBudgetTest, ACapBelowTheDrawRefusesEveryIncreaseButKeepsWhatRuns) {
  budget_.add(kilowatts(0, 10));
  const PowerDomainId ups = domain(PowerKind::kUps);
  caps_.set_cap(ups, Watts(15e3));
  EXPECT_GT(budget_.excess(caps_, ups), 0);
  const auto refused = budget_.check(caps_, std::vector<NodeDraw>{{NodeId(4), 1}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->domain, ups);
  EXPECT_EQ(refused->missing, budget_.excess(caps_, ups) + 1);
  EXPECT_EQ(budget_.headroom(caps_, rack(4)).free, 0);
  EXPECT_EQ(budget_.headroom(caps_, rack(4)).binding, ups);
  EXPECT_FALSE(budget_.check(caps_, std::vector<NodeDraw>{{NodeId(4), 0}}));
  caps_.set_cap(ups, std::nullopt);
  EXPECT_FALSE(budget_.check(caps_, kilowatts(4, 1)));
}

TEST_F(PowerBudgetTest, ACapNeverRaisesWhatTheEquipmentCarriesButASiteCapIsReplaced) {
  caps_.set_cap(domain(PowerKind::kUps), Watts(1e6));
  EXPECT_EQ(caps_.limit(domain(PowerKind::kUps)), Watts(60e3));
  caps_.set_cap(domain(PowerKind::kSiteCap), Watts(120e3));
  EXPECT_EQ(caps_.limit(domain(PowerKind::kSiteCap)), Watts(120e3));
  caps_.set_cap(domain(PowerKind::kSiteCap), std::nullopt);
  EXPECT_EQ(caps_.limit(domain(PowerKind::kSiteCap)), Watts(100e3));
}

TEST_F(PowerBudgetTest, ALoopThatLosesAUnitTakesLessHeat) {
  caps_.set_supply(domain(PowerKind::kCoolingLoop, 1), Watts(10e3));
  const PowerHeadroom room = budget_.headroom(caps_, rack(4));
  EXPECT_EQ(room.binding, domain(PowerKind::kCoolingLoop, 1));
  EXPECT_EQ(room.free, 10 * kKilowatt - 2 * tree_.idle(NodeId(4)));
  EXPECT_EQ(budget_.headroom(caps_, rack(0)).binding, domain(PowerKind::kCoolingLoop, 0));
  caps_.set_supply(domain(PowerKind::kCoolingLoop, 1), Watts(0));
  EXPECT_EQ(budget_.headroom(caps_, rack(4)).free, 0);
}

TEST_F(PowerBudgetTest, AGangAddsWhatItsAcceleratorsDrawAboveIdle) {
  const std::vector<NodeShare> nodes{{NodeId(1), 8}, {NodeId(2), 2.5}};
  const std::vector<NodeDraw> draws = draws_of(tree_, nodes, Watts(1000));
  ASSERT_EQ(draws.size(), 2u);
  EXPECT_EQ(draws[0].added, 8 * kKilowatt - tree_.idle(NodeId(1)));
  EXPECT_EQ(draws[1].added, milliwatts_of(2.5 * (Watts(1000) - Watts(2000) / 8)));
  EXPECT_EQ(draws_of(tree_, nodes, Watts(1))[0].added, 0);
}

TEST(PowerTree, SaysWhichNodesHaveNoPublishedIdlePower) {
  const NodeType* unknown = nullptr;
  for (const NodeType& type : test_catalog().all<NodeType>()) {
    if (!type.idle_power) unknown = &type;
  }
  ASSERT_NE(unknown, nullptr);
  const Topology topology =
      built(one_hall("    - racks: [{nodes: [{type: " + unknown->id + ", max_power: 4 kW}]}]\n"));
  const PowerTree tree(topology);
  EXPECT_EQ(tree.idle(NodeId(0)), 0);
  ASSERT_EQ(tree.assumptions().size(), 1u);
  EXPECT_NE(tree.assumptions()[0].find(unknown->id), std::string::npos);
}

/// Any draw on any nodes.
std::vector<NodeDraw> random_draws(Rng& rng, const Topology& topology) {
  std::vector<NodeDraw> draws;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    if (rng.below(2) == 0) continue;
    draws.push_back({NodeId(n), static_cast<Milliwatts>(rng.below(12'000'000))});
  }
  return draws;
}

/// Whether a domain counts what a node draws, found from the top down.
bool carries(const Topology& topology, PowerDomainId id, NodeId node) {
  const PowerDomain& rack = topology.power(topology.power_of(topology.place(node).rack));
  if (rack.loop == id) return true;
  PowerDomainId at = topology.power_of(topology.place(node).rack);
  while (at.valid() && at != id) at = topology.power(at).parent;
  return at == id;
}

TEST(PowerBudget, OnRandomTreesAStartIsTakenExactlyWhenEveryDomainHoldsIt) {
  Rng rng = Rng::stream(1, "budget");
  int taken = 0;
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    const Topology topology = built(random_site(rng));
    const PowerTree tree(topology);
    PowerCaps caps(tree);
    PowerBudget budget(tree);
    const std::size_t domains = topology.power_domains().size();
    std::vector<NodeDraw> running;
    for (int step = 0; step < 20; ++step) {
      const PowerDomainId any = PowerDomainId::at(rng.below(domains));
      caps.set_cap(any, budget.planned(any) * (0.9 + rng.uniform()));
      const std::vector<NodeDraw> draws = random_draws(rng, topology);
      Milliwatts worst = 0;
      for (std::size_t i = 0; i < domains; ++i) {
        const PowerDomainId id = PowerDomainId::at(i);
        Milliwatts sum = 0;
        Milliwatts added = 0;
        for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
          if (carries(topology, id, NodeId(n))) sum += tree.idle(NodeId(n));
        }
        for (const NodeDraw& d : running) sum += carries(topology, id, d.node) ? d.added : 0;
        for (const NodeDraw& d : draws) added += carries(topology, id, d.node) ? d.added : 0;
        EXPECT_EQ(budget.excess(caps, id), sum - caps.room(id));
        if (added > 0) worst = std::max(worst, sum + added - caps.room(id));
      }
      const auto missing = budget.try_add(caps, draws);
      EXPECT_EQ(missing ? missing->missing : 0, worst);
      ++(missing ? refused : taken);
      if (!missing) running.insert(running.end(), draws.begin(), draws.end());
    }
    budget.remove(running);
    EXPECT_EQ(budget, PowerBudget(tree));
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 100);
}

TEST_F(PowerBudgetTest, ASlowedJobIsToldWithTheLimitThatLeavesLeast) {
  const Fleet fleet(topology_);
  RunningJob job;
  job.gangs.resize(1);
  job.gangs[0].allocation.ranks = {{NodeId(0), 0xff}};
  job.terms.push_back({.clock = 1});
  Situation situation{.fleet = fleet.view(), .power = &budget_, .caps = &caps_};
  EXPECT_EQ(slowed_text(situation, job), "");
  job.terms[0].clock = 0.92;
  budget_.add(kilowatts(0, 6));
  caps_.set_cap(domain(PowerKind::kRow), Watts(14.5e3));
  EXPECT_EQ(slowed_text(situation, job),
            "runs at 92 % of its clock: s/h/row-1 carries 14 kW of its 14.5 kW");
  situation.power = nullptr;
  EXPECT_EQ(slowed_text(situation, job), "runs at 92 % of its clock");
}

}  // namespace
}  // namespace orrery

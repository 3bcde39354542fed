#include "scheduler/power/gang_power.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

// The devices of a plan draw less than the clock ladder of their type states: near its limit the
// gang loses a little of its clock, not the difference.
TEST(GangPower, TheLadderOfAGangBeginsAtTheDrawOfItsPlan) {
  const Topology topology = built(powered_site());
  const PowerTree tree(topology);
  PowerCaps caps(tree);
  PowerBudget budget(tree);
  Result<PowerModel> model =
      power_model(builtin_facts(), builtin_constants(), node_type("dgx-h100"), {});
  ASSERT_TRUE(model);
  PlacedGang gang;
  gang.allocation.ranks.push_back({NodeId(0), 0xff});
  GangTerms terms;
  terms.draw = Watts(500);
  terms.length = Duration::hours(1);
  PowerBudget planned = budget;
  planned.add(draws_of_gang(tree, gang, terms.draw));
  const PowerDomainId rack = topology.power_of(topology.place(NodeId(0)).rack);
  caps.set_cap(rack, planned.planned(rack) - Watts(10));
  EXPECT_FALSE(settle_power({budget, caps, {&*model, 1}}, gang, terms));
  EXPECT_GE(terms.clock, 0.98);
  EXPECT_LT(terms.clock, 1);
  EXPECT_LT(terms.draw, Watts(500));
  EXPECT_GT(terms.draw, Watts(480));
  EXPECT_GT(*terms.length, Duration::hours(1));
}

}  // namespace
}  // namespace orrery

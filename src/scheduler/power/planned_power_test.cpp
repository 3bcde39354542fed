#include "scheduler/power/planned_power.hpp"

#include <gtest/gtest.h>

#include <array>

#include "fleet/fleet.hpp"
#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

/// All devices of a node of eight.
PlacedGang on_node(std::uint32_t node) {
  PlacedGang gang;
  gang.allocation.ranks.push_back({NodeId(node), 0xff});
  return gang;
}

GangTerms drawing(Watts each) {
  GangTerms terms;
  terms.draw = each;
  return terms;
}

/// Racks of two nodes, which draw 2 kW each when they are idle. A job of one gang runs on node 0,
/// with devices of 500 W.
class PlannedPowerTest : public testing::Test {
 protected:
  PlannedPowerTest() {
    RunningJob job{.id = JobId(0)};
    job.gangs.push_back(on_node(0));
    job.terms.push_back(drawing(Watts(500)));
    running_.push_back(job);
    budget_.add(draws_of_gang(tree_, job.gangs.front(), Watts(500)));
  }

  [[nodiscard]] Situation situation() const {
    Situation s{.now = Instant(), .fleet = fleet_.view()};
    s.running = running_;
    s.power = &budget_;
    s.caps = &caps_;
    return s;
  }
  [[nodiscard]] Watts planned(const PlannedPower& power) const {
    return power.budget().planned(rack_);
  }

  Fleet fleet_{built(powered_site())};
  PowerTree tree_{fleet_.topology()};
  PowerCaps caps_{tree_};
  PowerBudget budget_{tree_};
  PowerDomainId rack_ = fleet_.topology().power_of(fleet_.topology().place(NodeId(0)).rack);
  std::vector<RunningJob> running_;
};

TEST_F(PlannedPowerTest, WithoutALimitNothingIsPlanned) {
  Situation s = situation();
  s.power = nullptr;
  s.caps = nullptr;
  PlannedPower power(s);
  EXPECT_FALSE(power.limited());
  power.enter(on_node(1), drawing(Watts(500)));
  power.leave(running_.front());
  EXPECT_EQ(power.saved(), std::nullopt);
}

TEST_F(PlannedPowerTest, AGangIsPlannedWithoutAChangeOfTheSituation) {
  const Situation s = situation();
  PlannedPower power(s);
  ASSERT_TRUE(power.limited());
  EXPECT_EQ(planned(power), Watts(6000));
  power.enter(on_node(1), drawing(Watts(750)));
  EXPECT_EQ(planned(power), Watts(10'000));
  EXPECT_EQ(budget_.planned(rack_), Watts(6000));
}

TEST_F(PlannedPowerTest, GangsHoldIfTheyFitTogether) {
  const Situation s = situation();
  PlannedPower power(s);
  power.leave(running_.front());
  const std::array<PlacedGang, 2> gangs{on_node(0), on_node(1)};
  const std::array<GangTerms, 2> terms{drawing(Watts(500)), drawing(Watts(500))};
  caps_.set_cap(rack_, Watts(7999));
  EXPECT_TRUE(power.holds(std::span(gangs).first(1), std::span(terms).first(1)));
  EXPECT_FALSE(power.holds(gangs, terms));
  caps_.set_cap(rack_, Watts(8000));
  EXPECT_TRUE(power.holds(gangs, terms));
  EXPECT_EQ(planned(power), Watts(4000)) << "a question plans nothing";
}

TEST_F(PlannedPowerTest, AJobLeavesAndComesBackWithTheClockThatWasSet) {
  const Situation s = situation();
  PlannedPower power(s);
  const RunningJob& job = s.running.front();
  const ClockStep full{.clock = 1, .each = Watts(500)};
  const ClockStep slow{.clock = 0.8, .each = Watts(375)};
  power.change(shares_of(job.gangs.front()), full, slow);
  power.set_clock(0, 0, slow);
  EXPECT_EQ(planned(power), Watts(5000));
  EXPECT_EQ(power.terms_now(job, 0).clock, 0.8);
  EXPECT_EQ(power.terms_now(job, 0).draw, Watts(375));
  EXPECT_EQ(job.terms.front().draw, Watts(500));
  power.leave(job);
  EXPECT_EQ(planned(power), Watts(4000));
  caps_.set_cap(rack_, Watts(4999));
  EXPECT_FALSE(power.holds(job));
  caps_.set_cap(rack_, Watts(5000));
  EXPECT_TRUE(power.holds(job));
  power.enter(job);
  EXPECT_EQ(planned(power), Watts(5000));
}

TEST_F(PlannedPowerTest, ARestoredBudgetIsThatWhichWasSaved) {
  const Situation s = situation();
  PlannedPower power(s);
  std::optional<PowerBudget> saved = power.saved();
  power.leave(s.running.front());
  EXPECT_EQ(planned(power), Watts(4000));
  power.restore(std::move(saved));
  EXPECT_EQ(planned(power), Watts(6000));
}

}  // namespace
}  // namespace orrery

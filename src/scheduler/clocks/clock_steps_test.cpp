#include "scheduler/clocks/clock_steps.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "perf/repository_facts_test.hpp"
#include "scheduler/pass/pass_fleet.hpp"
#include "scheduler/place/cluster_test.hpp"
#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

/// More than the rounding of draws to milliwatts adds up to.
constexpr Watts kRounding{0.01};

/// A full pass that considers clocks.
struct ClockPass {
  ClockPass(const Situation& now, const Policy& policy, PassPlacers& placers)
      : situation(now),
        context(situation, policy, PassKind::kFull, fleet),
        search(context, placers),
        clocks(context, search) {}

  [[nodiscard]] const std::vector<Decision>& decisions() const { return context.result.decisions; }

  Situation situation;
  PassFleet fleet;
  PassContext context;
  StartSearch search;
  ClockSteps clocks;
};

/// A job runs on one of the two nodes of a rack, at the full clock.
class ClockStepsTest : public testing::Test {
 protected:
  ClockStepsTest() {
    const JobId id = cluster_.submit(cluster_.job(8));
    cluster_.pass("fifo");
    EXPECT_TRUE(cluster_.runs(id));
    node_ = job().gangs.front().allocation.ranks.front().node;
    rack_ = topology().power_of(topology().place(node_).rack);
    ladder_ = ladder_of(clocks_of(situation(), *job().request, job().gangs.front(), {}));
    EXPECT_FALSE(ladder_.empty());
    run_at(0);
  }

  [[nodiscard]] const Topology& topology() const { return cluster_.tree().topology(); }
  [[nodiscard]] RunningJob& job() { return cluster_.running().front(); }
  [[nodiscard]] Situation situation() const {
    Situation s = cluster_.situation();
    s.costs = &costs_;
    s.power = &budget_;
    s.caps = &caps_;
    return s;
  }

  /// The job runs at a step of its ladder, for which the budget plans.
  void run_at(std::size_t step) {
    GangTerms& terms = job().terms.front();
    terms.clock = ladder_[step].clock;
    terms.draw = ladder_[step].each;
    budget_ = PowerBudget(tree_);
    budget_.add(draws_of_gang(tree_, job().gangs.front(), terms.draw));
  }
  /// The planned draw of the rack while the job runs at a step.
  [[nodiscard]] Watts rack_at(std::size_t step) const {
    return watts_of(tree_.idle(node_)) + 8 * ladder_[step].each;
  }
  void cap_rack(Watts cap) { caps_.set_cap(rack_, cap); }

  ClockPass& begin_pass() { return pass_.emplace(situation(), policy_, placers_); }
  [[nodiscard]] bool within_caps() const {
    return pass_->context.power.budget().excess(caps_, rack_) <= 0;
  }

  /// A job that waits, and its start on the other node of the rack: under a cap at which it can run
  /// at a low clock alone, if the other job keeps its own.
  StartOrRefusal slowed_start() {
    cluster_.submit(cluster_.job(8));
    cap_rack(8 * ladder_[0].each + 8 * ladder_[20].each);
    ClockPass& pass = begin_pass();
    PlacedGang beside;
    beside.allocation.ranks.push_back({NodeId(node_.value() ^ 1U), 0xff});
    return pass.search.with_terms(pass.fleet.now(), pass.situation.waiting.front(), {beside});
  }

  TestCluster cluster_{powered_site()};
  FleetCosts costs_ = *FleetCosts::make({builtin_facts(), builtin_constants()}, topology(), {});
  PowerTree tree_{topology()};
  PowerCaps caps_{tree_};
  PowerBudget budget_{tree_};
  NodeId node_;
  PowerDomainId rack_;
  std::vector<ClockStep> ladder_;
  Policy policy_ = *policy_named("hardware-aware");
  PassPlacers placers_{cluster_.tree()};
  std::optional<ClockPass> pass_;
};

TEST_F(ClockStepsTest, CapsThatHoldChangeNoClock) {
  cap_rack(rack_at(0) + kRounding);
  ClockPass& pass = begin_pass();
  pass.clocks.relieve_power();
  pass.clocks.raise();
  EXPECT_TRUE(pass.decisions().empty());
}

TEST_F(ClockStepsTest, ACapBelowTheDrawLowersTheClockToTheFirstStepThatHolds) {
  constexpr std::size_t kStep = 7;
  cap_rack(rack_at(kStep) + kRounding);
  ClockPass& pass = begin_pass();
  pass.clocks.relieve_power();
  ASSERT_EQ(pass.decisions().size(), 1u);
  const auto& set = std::get<SetClock>(pass.decisions().front());
  EXPECT_EQ(set.job, job().id);
  EXPECT_EQ(set.gang, 0u);
  EXPECT_EQ(set.terms.clock, ladder_[kStep].clock);
  EXPECT_EQ(pass.context.power.terms_now(job(), 0).clock, ladder_[kStep].clock);
  EXPECT_TRUE(within_caps());
  EXPECT_NEAR(set.terms.length->count_seconds() * ladder_[kStep].throughput, 3600, 1e-3);
}

TEST_F(ClockStepsTest, AClockIsToldOnce) {
  cap_rack(rack_at(7) + kRounding);
  ClockPass& pass = begin_pass();
  pass.clocks.relieve_power();
  pass.clocks.tell(0);
  EXPECT_EQ(pass.decisions().size(), 1u);
}

TEST_F(ClockStepsTest, AJobUnderACapThatNoClockKeepsIsStopped) {
  JobRequest preemptible = *job().request;
  preemptible.preemptible = true;
  job().request = &preemptible;
  cap_rack(rack_at(ladder_.size() - 1) - Watts(10));
  ClockPass& pass = begin_pass();
  pass.clocks.relieve_power();
  ASSERT_EQ(pass.decisions().size(), 1u);
  const auto& stops = std::get<PreemptJob>(pass.decisions().front());
  EXPECT_EQ(stops.job, job().id);
  EXPECT_FALSE(stops.in_favour_of.valid());
}

TEST_F(ClockStepsTest, ASlowedJobGetsTheHighestClockThatTheCapsAllow) {
  run_at(20);
  cap_rack(rack_at(5) + kRounding);
  ClockPass& pass = begin_pass();
  pass.clocks.raise();
  ASSERT_EQ(pass.decisions().size(), 1u);
  EXPECT_EQ(std::get<SetClock>(pass.decisions().front()).terms.clock, ladder_[5].clock);
  EXPECT_TRUE(within_caps());
}

// With both jobs slowed a little, more work is done.
TEST_F(ClockStepsTest, AStartSharesThePowerOfARunningJob) {
  StartOrRefusal found = slowed_start();
  ASSERT_TRUE(found);
  const double alone = found->terms.front().clock;
  ASSERT_LT(alone, 1);
  const Allocation place = found->gangs.front().allocation;
  const WaitingJob& waits = pass_->situation.waiting.front();
  pass_->clocks.share_power(waits, found);
  ASSERT_TRUE(found);
  EXPECT_GT(found->terms.front().clock, alone);
  EXPECT_EQ(found->gangs.front().allocation, place);
  pass_->context.start(waits, *std::move(found));
  pass_->clocks.tell(0);
  ASSERT_EQ(pass_->decisions().size(), 2u);
  EXPECT_EQ(std::get<SetClock>(pass_->decisions()[0]).job, job().id);
  EXPECT_LT(std::get<SetClock>(pass_->decisions()[0]).terms.clock, 1);
  EXPECT_EQ(std::get<StartJob>(pass_->decisions()[1]).job, waits.id);
  EXPECT_TRUE(within_caps());
}

// Only full passes raise clocks again.
TEST_F(ClockStepsTest, UnderAPolicyWithoutFullPassesNoPowerIsShared) {
  policy_ = *policy_named("fifo");
  StartOrRefusal found = slowed_start();
  ASSERT_TRUE(found);
  const double alone = found->terms.front().clock;
  ASSERT_LT(alone, 1);
  pass_->clocks.share_power(pass_->situation.waiting.front(), found);
  EXPECT_EQ(found->terms.front().clock, alone);
  pass_->clocks.tell(0);
  EXPECT_TRUE(pass_->decisions().empty());
}

}  // namespace
}  // namespace orrery

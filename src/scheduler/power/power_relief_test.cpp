#include "scheduler/power/power_relief.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "scheduler/power/power_test.hpp"

namespace orrery {
namespace {

/// As compute-bound training on an H100 with its share of the node.
constexpr std::array<ClockStep, 4> kLadder{{{1.0, Watts(1000), 1.0},
                                            {0.9, Watts(880), 0.93},
                                            {0.75, Watts(720), 0.81},
                                            {0.5, Watts(560), 0.59}}};

class PowerReliefTest : public testing::Test {
 protected:
  PowerReliefTest() {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) nodes_[n] = {NodeId(n), 8};
  }

  /// A gang on whole nodes, from `first` on, planned at the first step.
  void run(std::size_t first, std::size_t count, double value) {
    gangs_.push_back({.power = {std::span(nodes_).subspan(first, count), kLadder}, .value = value});
    budget_.add(draws_of(tree_, gangs_.back().power.nodes, kLadder[0].each));
  }
  PowerDomainId rack(std::uint32_t node) const {
    return topology_.power_of(topology_.place(NodeId(node)).rack);
  }
  PowerDomainId ups() const { return power_domain(topology_, PowerKind::kUps); }
  PowerRelief relief() const { return relieve(budget_, caps_, gangs_); }

  Topology topology_ = built(powered_site());
  PowerTree tree_{topology_};
  PowerCaps caps_{tree_};
  PowerBudget budget_{tree_};
  std::array<NodeShare, 6> nodes_;
  std::vector<RunningGang> gangs_;
};

TEST_F(PowerReliefTest, NothingChangesWhileEveryCapHolds) {
  run(0, 6, 1);
  const PowerRelief none = relief();
  EXPECT_TRUE(none.changes.empty());
  EXPECT_TRUE(none.above.empty());
  EXPECT_EQ(none.loss, 0);
}

TEST_F(PowerReliefTest, TheLeastValuableWorkSlowsFirst) {
  run(0, 2, 5);
  run(2, 2, 1);
  run(4, 2, 3);
  caps_.set_cap(ups(), Watts(46.5e3));
  EXPECT_EQ(relief().changes, (std::vector<PowerChange>{{1, 1}}));
}

TEST_F(PowerReliefTest, OnlyWorkUnderTheDomainThatIsAboveItsCapChanges) {
  run(0, 2, 5);
  run(4, 2, 1);
  caps_.set_cap(rack(0), Watts(14e3));
  EXPECT_EQ(relief().changes, (std::vector<PowerChange>{{0, 2}}));
}

TEST_F(PowerReliefTest, WorthlessPreemptibleWorkIsNotStoppedWhereClocksSuffice) {
  run(0, 2, 5);
  run(2, 2, 0);
  gangs_[1].preemptible = true;
  caps_.set_cap(ups(), Watts(26e3));
  for (const PowerChange& change : relief().changes) EXPECT_TRUE(change.step);
}

TEST_F(PowerReliefTest, WhatClocksCannotDoStopsTheLeastValuablePreemptibleWork) {
  run(0, 2, 5);
  run(2, 2, 2);
  run(4, 2, 1);
  gangs_[0].preemptible = gangs_[1].preemptible = true;
  caps_.set_cap(ups(), Watts(22e3));
  const PowerRelief relieved = relief();
  EXPECT_TRUE(relieved.above.empty());
  ASSERT_FALSE(relieved.changes.empty());
  EXPECT_NE(
      std::find(relieved.changes.begin(), relieved.changes.end(), PowerChange{1, std::nullopt}),
      relieved.changes.end());
  for (const PowerChange& change : relieved.changes) EXPECT_TRUE(change.gang == 1 || change.step);
}

TEST_F(PowerReliefTest, ADomainThatCannotComeUnderItsCapIsNamedAndBroughtAsLowAsItGoes) {
  run(0, 2, 5);
  run(4, 2, 1);
  caps_.set_cap(rack(0), Watts(1e3));
  caps_.set_cap(rack(4), Watts(15e3));
  const PowerRelief relieved = relief();
  EXPECT_EQ(relieved.above, (std::vector<PowerDomainId>{rack(0)}));
  EXPECT_EQ(relieved.changes, (std::vector<PowerChange>{{0, 3}, {1, 1}}));
}

/// A small fleet under a cap that fell, and plain tables of it for exhaustive search.
struct Emergency {
  explicit Emergency(Rng& rng) : topology(built(random_site(rng))) {
    for (std::uint32_t n = 0; n < topology.node_count(); ++n) nodes.push_back({NodeId(n), 8});
    std::size_t first = 0;
    while (first < nodes.size() && gangs.size() < 5) {
      const std::size_t count = std::min<std::size_t>(1 + rng.below(3), nodes.size() - first);
      gangs.push_back({.power = {std::span(nodes).subspan(first, count), kLadder},
                       .step = rng.below(4) == 0 ? 1u : 0u,
                       .value = rng.uniform() * 4 * static_cast<double>(count),
                       .stop_loss = rng.uniform(),
                       .preemptible = rng.below(2) == 0});
      budget.add(draws_of(tree, gangs.back().power.nodes, kLadder[gangs.back().step].each));
      first += count;
    }
    for (std::uint64_t caps_left = 1 + rng.below(2); caps_left > 0; --caps_left) {
      const PowerDomainId id = PowerDomainId::at(rng.below(topology.power_domains().size()));
      caps.set_cap(id, budget.planned(id) * (0.3 + 0.7 * rng.uniform()));
    }
  }
  Emergency(const Emergency&) = delete;
  Emergency& operator=(const Emergency&) = delete;

  /// Options of a gang: the steps from its own on, then the stop.
  static constexpr std::size_t kStop = kLadder.size();

  double loss(const RunningGang& gang, std::size_t option) const {
    const double now = gang.value * kLadder[gang.step].throughput;
    if (option == kStop) return now + gang.stop_loss;
    return now - gang.value * kLadder[option].throughput;
  }
  PowerBudget after(const std::vector<std::size_t>& options) const {
    PowerBudget changed = budget;
    for (std::size_t i = 0; i < gangs.size(); ++i) {
      const GangPower& power = gangs[i].power;
      changed.remove(draws_of(tree, power.nodes, kLadder[gangs[i].step].each));
      if (options[i] != kStop) changed.add(draws_of(tree, power.nodes, kLadder[options[i]].each));
    }
    return changed;
  }
  std::vector<PowerDomainId> above(const PowerBudget& planned) const {
    std::vector<PowerDomainId> over;
    for (std::size_t i = 0; i < topology.power_domains().size(); ++i) {
      if (planned.excess(caps, PowerDomainId::at(i)) > 0) over.push_back(PowerDomainId::at(i));
    }
    return over;
  }
  bool stands_under(const RunningGang& gang, std::span<const PowerDomainId> domains) const {
    for (const NodeShare& share : gang.power.nodes) {
      const auto path = tree.path(topology.place(share.node).rack);
      for (const PowerDomainId id : domains) {
        if (std::find(path.begin(), path.end(), id) != path.end()) return true;
      }
    }
    return false;
  }
  /// The least loss of all ways to hold every cap; infinite when there is none.
  double least_loss() const {
    const std::vector<PowerDomainId> hard =
        above(after(std::vector<std::size_t>(gangs.size(), kLadder.size() - 1)));
    std::vector<std::size_t> options(gangs.size());
    double best = std::numeric_limits<double>::infinity();
    try_from(0, hard, options, best);
    return best;
  }

  Topology topology;
  PowerTree tree{topology};
  PowerCaps caps{tree};
  PowerBudget budget{tree};
  std::vector<NodeShare> nodes;
  std::vector<RunningGang> gangs;

 private:
  void try_from(std::size_t i, std::span<const PowerDomainId> hard,
                std::vector<std::size_t>& options, double& best) const {
    if (i == gangs.size()) {
      double sum = 0;
      for (std::size_t g = 0; g < gangs.size(); ++g) sum += loss(gangs[g], options[g]);
      if (sum < best && above(after(options)).empty()) best = sum;
      return;
    }
    const bool may_stop = gangs[i].preemptible && stands_under(gangs[i], hard);
    for (std::size_t o = gangs[i].step; o < (may_stop ? kStop + 1 : kStop); ++o) {
      options[i] = o;
      try_from(i + 1, hard, options, best);
    }
  }
};

TEST(PowerRelief, OnSmallTreesHoldsEveryCapWheneverThatIsPossibleAtLittleMoreThanTheLeastLoss) {
  Rng rng = Rng::stream(1, "relief");
  double sum_ratio = 0;
  int feasible = 0;
  int impossible = 0;
  for (int round = 0; round < 300; ++round) {
    const Emergency emergency(rng);
    const PowerRelief relieved = relieve(emergency.budget, emergency.caps, emergency.gangs);
    std::vector<std::size_t> options;
    options.reserve(emergency.gangs.size());
    for (const RunningGang& gang : emergency.gangs) options.push_back(gang.step);
    double loss = 0;
    for (const PowerChange& change : relieved.changes) {
      const RunningGang& gang = emergency.gangs[change.gang];
      options[change.gang] = change.step.value_or(Emergency::kStop);
      EXPECT_GT(options[change.gang], gang.step);
      EXPECT_TRUE(change.step || gang.preemptible);
      loss += emergency.loss(gang, options[change.gang]);
    }
    EXPECT_NEAR(loss, relieved.loss, 1e-9);
    EXPECT_EQ(emergency.above(emergency.after(options)), relieved.above);
    const double least = emergency.least_loss();
    EXPECT_EQ(relieved.above.empty(), std::isfinite(least)) << "round " << round;
    if (!std::isfinite(least)) ++impossible;
    if (!std::isfinite(least) || least == 0) continue;
    ++feasible;
    sum_ratio += loss / least;
  }
  EXPECT_GT(feasible, 100);
  EXPECT_GT(impossible, 10);
  EXPECT_LT(sum_ratio / feasible, 1.1);
}

TEST_F(PowerReliefTest, AnExcessElsewhereDoesNotTakeTheRoomOfAStart) {
  run(2, 2, 1);
  run(4, 2, 1);
  run(0, 2, 1);
  caps_.set_cap(rack(4), budget_.planned(rack(4)) * 0.3);
  const auto room = make_room(budget_, caps_, gangs_, {1, 0});
  ASSERT_TRUE(room);
  EXPECT_EQ(room->above, std::vector{rack(4)});
  EXPECT_EQ(room->changes, (std::vector<PowerChange>{{1, 3}})) << "only what is above slows";
  std::swap(gangs_[1], gangs_[2]);
  EXPECT_FALSE(make_room(budget_, caps_, gangs_, {1, 0})) << "it would start above a limit";
}

/// A few gangs with curves of their own below one or two caps, and one more that is to start.
struct Crowd {
  explicit Crowd(Rng& rng) {
    const std::size_t count = 2 + rng.below(5);
    ladders.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      // Draw falls faster than throughput at first, by a curve of random bend.
      const double bend = 1.3 + 1.7 * rng.uniform();
      const double fixed = 250 + 200 * rng.uniform();
      const double bound = 0.5 + 0.5 * rng.uniform();
      for (int tenths = 10; tenths >= 5; --tenths) {
        const double clock = tenths / 10.0;
        const double moving = (1000 - fixed) * std::exp(bend * std::log(clock));
        ladders[i].push_back({clock, Watts(fixed + moving), 1 / (bound / clock + 1 - bound)});
      }
    }
    for (std::uint32_t n = 0; n < count; ++n) nodes.push_back({NodeId(n), 8});
    for (std::size_t i = 0; i < count; ++i) {
      gangs.push_back({.power = {std::span(nodes).subspan(i, 1), ladders[i]},
                       .value = 8 * (0.5 + rng.uniform())});
    }
    PowerBudget full(tree);
    for (const RunningGang& gang : gangs) full.add(draws_of(tree, gang.power.nodes, each(gang, 0)));
    const auto part = [&](PowerDomainId id, double share) {
      const Watts idle = PowerBudget(tree).planned(id);
      caps.set_cap(id, idle + (full.planned(id) - idle) * share);
    };
    part(power_domain(topology, PowerKind::kUps), 0.55 + 0.4 * rng.uniform());
    if (rng.below(2) == 0) {
      part(power_domain(topology, PowerKind::kRow), 0.6 + 0.4 * rng.uniform());
    }
    // The running gangs come first, each at the best step that was left.
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const auto step = clock_for(budget, caps, gangs[i].power);
      if (!step) continue;
      gangs[i].step = *step;
      budget.add(draws_of(tree, gangs[i].power.nodes, each(gangs[i], *step)));
      running.push_back(gangs[i]);
    }
    newcomer = gangs.back();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  static Watts each(const RunningGang& gang, std::size_t step) {
    return gang.power.ladder[step].each;
  }
  static double work(const RunningGang& gang, std::size_t step) {
    return gang.value * gang.power.ladder[step].throughput;
  }
  /// Most work of a second over all steps not above theirs, with the new gang's or without it.
  double best(const PowerBudget& planned, std::size_t from) const {
    if (from == running.size()) {
      double most = 0;
      for (std::size_t step = 0; step < newcomer.power.ladder.size(); ++step) {
        if (planned.check(caps, draws_of(tree, newcomer.power.nodes, each(newcomer, step)))) {
          continue;
        }
        most = std::max(most, work(newcomer, step));
      }
      return most;
    }
    const RunningGang& gang = running[from];
    double most = 0;
    for (std::size_t step = gang.step; step < gang.power.ladder.size(); ++step) {
      PowerBudget lower = planned;
      lower.remove(draws_of(tree, gang.power.nodes, each(gang, gang.step)));
      lower.add(draws_of(tree, gang.power.nodes, each(gang, step)));
      most = std::max(most, work(gang, step) + best(lower, from + 1));
    }
    return most;
  }

  Topology topology = built(powered_site());
  PowerTree tree{topology};
  PowerCaps caps{tree};
  PowerBudget budget{tree};
  std::vector<std::vector<ClockStep>> ladders;
  std::vector<NodeShare> nodes;
  std::vector<RunningGang> gangs;
  std::vector<RunningGang> running;
  RunningGang newcomer;
};

TEST(PowerRelief, RoomForAStartDoesAlmostTheMostWorkOfAllClocks) {
  Rng rng = Rng::stream(1, "room");
  double sum = 0;
  int shared = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    Crowd crowd(rng);
    double now = 0;
    for (const RunningGang& gang : crowd.running) now += Crowd::work(gang, gang.step);
    const auto own = clock_for(crowd.budget, crowd.caps, crowd.newcomer.power);
    const double alone = own ? Crowd::work(crowd.newcomer, *own) : 0;
    std::vector<RunningGang> all = crowd.running;
    all.push_back(crowd.newcomer);
    PowerBudget with = crowd.budget;
    with.add(draws_of(crowd.tree, crowd.newcomer.power.nodes, Crowd::each(crowd.newcomer, 0)));
    const auto room = make_room(with, crowd.caps, all, {1, alone});
    double chosen = now + alone;
    if (room) {
      ++shared;
      PowerBudget after = with;
      chosen = now + Crowd::work(crowd.newcomer, 0) - room->loss;
      EXPECT_GT(chosen, now + alone);
      for (const PowerChange& change : room->changes) {
        const RunningGang& gang = all[change.gang];
        ASSERT_TRUE(change.step);
        after.remove(draws_of(crowd.tree, gang.power.nodes, Crowd::each(gang, gang.step)));
        after.add(draws_of(crowd.tree, gang.power.nodes, Crowd::each(gang, *change.step)));
      }
      for (std::size_t i = 0; i < crowd.topology.power_domains().size(); ++i) {
        EXPECT_LE(after.excess(crowd.caps, PowerDomainId::at(i)), 0);
      }
    }
    const double best = crowd.best(crowd.budget, 0);
    EXPECT_LE(chosen, best * (1 + 1e-9));
    EXPECT_GT(chosen, best * 0.95) << "round " << round;
    sum += chosen / best;
  }
  EXPECT_GT(shared, kRounds / 4);
  EXPECT_GT(sum / kRounds, 0.99);
}

}  // namespace
}  // namespace orrery

#include "twin/traffic/max_min.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kNear = 1e-7;

struct PlainFlow {
  double weight = 1;
  double demand = kNoLimit;
  std::vector<ResourceUse> uses;

  [[nodiscard]] FlowTerms terms() const { return {weight, BytesPerSecond(demand)}; }
};

/// Progressive filling as in the textbook: raise all flows, stop those at their demand or at a full
/// resource, repeat. O(flows^2 x resources).
std::vector<double> filled_plainly(const std::vector<double>& capacities,
                                   const std::vector<PlainFlow>& flows) {
  std::vector<double> rates(flows.size());
  std::vector<bool> stopped(flows.size());
  for (std::size_t left = flows.size(); left > 0;) {
    double level = kNoLimit;
    std::vector<double> full(capacities.size(), kNoLimit);
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      double free = capacities[r];
      double weight = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        for (const ResourceUse& use : flows[f].uses) {
          if (use.resource.value() != r) continue;
          if (stopped[f]) free -= rates[f] * use.multiplicity;
          if (!stopped[f]) weight += flows[f].weight * use.multiplicity;
        }
      }
      if (weight > 0) full[r] = std::max(0.0, free) / weight;
      level = std::min(level, full[r]);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!stopped[f]) level = std::min(level, flows[f].demand / flows[f].weight);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (stopped[f]) continue;
      bool stops = flows[f].demand / flows[f].weight <= level * (1 + 1e-12);
      for (const ResourceUse& use : flows[f].uses) {
        stops = stops || full[use.resource.value()] <= level * (1 + 1e-12);
      }
      if (!stops) continue;
      rates[f] = std::min(flows[f].demand, level * flows[f].weight);
      stopped[f] = true;
      --left;
    }
  }
  return rates;
}

PlainFlow any_flow(Rng& rng, std::size_t resources) {
  PlainFlow flow;
  flow.weight = 1 + static_cast<double>(rng.below(4));
  if (rng.below(3) > 0) flow.demand = 1e8 * (1 + static_cast<double>(rng.below(200)));
  for (std::size_t r = 0; r < resources; ++r) {
    if (rng.below(resources) >= 3) continue;
    flow.uses.push_back({ResourceId::at(r), 0.5 * (1 + static_cast<double>(rng.below(6)))});
  }
  if (flow.uses.empty()) flow.uses.push_back({ResourceId::at(rng.below(resources)), 1});
  return flow;
}

/// Random changes to flows and resources, with a plain copy of their state.
class Churn {
 public:
  Churn(std::uint64_t seed, std::size_t resources, double tolerance = SharedLinks::kExact)
      : rng_(seed), links_(tolerance) {
    for (std::size_t r = 0; r < resources; ++r) {
      capacities_.push_back(1e9 * (1 + static_cast<double>(rng_.below(100))));
      links_.add_resource(BytesPerSecond(capacities_.back()));
    }
  }

  void change() {
    const std::uint64_t what = rng_.below(10);
    if (what < 5 || flows_.empty()) {
      flows_.push_back(any_flow(rng_, capacities_.size()));
      ids_.push_back(links_.add_flow(flows_.back().terms(), flows_.back().uses));
    } else if (what < 8) {
      remove(rng_.below(flows_.size()));
    } else if (what < 9) {
      PlainFlow& flow = flows_[rng_.below(flows_.size())];
      flow.demand = 1e8 * static_cast<double>(rng_.below(200));
      links_.set_terms(ids_[static_cast<std::size_t>(&flow - flows_.data())], flow.terms());
    } else {
      const std::size_t r = rng_.below(capacities_.size());
      capacities_[r] = 1e9 * static_cast<double>(rng_.below(100));
      links_.set_capacity(ResourceId::at(r), BytesPerSecond(capacities_[r]));
    }
  }

  void remove(std::size_t at) {
    links_.remove_flow(ids_[at]);
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(at));
    flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  [[nodiscard]] double load(std::size_t r) const {
    double sum = 0;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      for (const ResourceUse& use : flows_[f].uses) {
        if (use.resource.value() == r) sum += links_.rate(ids_[f]).value() * use.multiplicity;
      }
    }
    return sum;
  }

  /// On a full resource no flow has a higher level.
  [[nodiscard]] bool is_bottleneck(std::size_t f, ResourceId resource) const {
    const std::size_t r = resource.value();
    if (load(r) < capacities_[r] * (1 - kNear) - 1e-6) return false;
    const double level = links_.rate(ids_[f]).value() / flows_[f].weight;
    for (std::size_t other = 0; other < flows_.size(); ++other) {
      for (const ResourceUse& use : flows_[other].uses) {
        if (use.resource != resource) continue;
        const double theirs = links_.rate(ids_[other]).value() / flows_[other].weight;
        if (theirs > level * (1 + kNear) + 1e-6) return false;
      }
    }
    return true;
  }

  SharedLinks& links() { return links_; }
  [[nodiscard]] const std::vector<double>& capacities() const { return capacities_; }
  [[nodiscard]] const std::vector<PlainFlow>& flows() const { return flows_; }
  [[nodiscard]] const std::vector<FlowId>& ids() const { return ids_; }

 private:
  Rng rng_;
  SharedLinks links_;
  std::vector<double> capacities_;
  std::vector<PlainFlow> flows_;
  std::vector<FlowId> ids_;
};

ResourceUse use_of(ResourceId resource) { return {resource, 1}; }

TEST(SharedLinks, flows_on_one_link_share_it_evenly_and_unused_shares_go_to_the_others) {
  SharedLinks links;
  const ResourceId link = links.add_resource(BytesPerSecond(12));
  const std::vector<ResourceUse> uses{use_of(link)};
  const FlowId small = links.add_flow({1, BytesPerSecond(2)}, uses);
  const FlowId a = links.add_flow({}, uses);
  const FlowId b = links.add_flow({}, uses);
  links.update();
  EXPECT_DOUBLE_EQ(links.rate(small).value(), 2);
  EXPECT_DOUBLE_EQ(links.rate(a).value(), 5);
  EXPECT_DOUBLE_EQ(links.rate(b).value(), 5);
}

TEST(SharedLinks, a_flow_bound_elsewhere_leaves_more_to_the_rest) {
  SharedLinks links;
  const ResourceId narrow = links.add_resource(BytesPerSecond(1));
  const ResourceId wide = links.add_resource(BytesPerSecond(1));
  const std::vector<ResourceUse> on_narrow{use_of(narrow)};
  const std::vector<ResourceUse> on_wide{use_of(wide)};
  const std::vector<ResourceUse> on_both{use_of(narrow), use_of(wide)};
  links.add_flow({}, on_narrow);
  links.add_flow({}, on_narrow);
  const FlowId through = links.add_flow({}, on_both);
  const FlowId rest = links.add_flow({}, on_wide);
  links.update();
  EXPECT_NEAR(links.rate(through).value(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(links.rate(rest).value(), 2.0 / 3, 1e-12);
}

TEST(SharedLinks, weights_and_multiplicities_count) {
  SharedLinks links;
  const ResourceId link = links.add_resource(BytesPerSecond(10));
  const FlowId heavy = links.add_flow({3, BytesPerSecond(kNoLimit)}, std::vector{use_of(link)});
  const FlowId twice = links.add_flow({}, std::vector<ResourceUse>{{link, 2}});
  links.update();
  // 3 x level + 2 x level fill it.
  EXPECT_DOUBLE_EQ(links.rate(heavy).value(), 6);
  EXPECT_DOUBLE_EQ(links.rate(twice).value(), 2);
}

TEST(SharedLinks, rates_are_those_of_plain_filling_after_any_changes) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Churn world(seed, 3 + seed % 8);
    for (int step = 0; step < 60; ++step) {
      world.change();
      if (step % 3 == 1) world.change();
      world.links().update();
      const std::vector<double> expected = filled_plainly(world.capacities(), world.flows());
      for (std::size_t f = 0; f < expected.size(); ++f) {
        ASSERT_NEAR(world.links().rate(world.ids()[f]).value(), expected[f],
                    kNear * expected[f] + 1e-3)
            << "seed " << seed << ", step " << step << ", flow " << f;
      }
    }
  }
}

TEST(SharedLinks, many_flows_after_many_changes_have_the_rates_of_a_new_start) {
  Rng rng(6);
  SharedLinks links;
  std::vector<PlainFlow> flows;
  std::vector<FlowId> ids;
  for (int r = 0; r < 60; ++r) links.add_resource(BytesPerSecond(2e10));
  for (int i = 0; i < 500; ++i) {
    flows.push_back(any_flow(rng, 60));
    ids.push_back(links.add_flow(flows.back().terms(), flows.back().uses));
  }
  for (int step = 0; step < 30; ++step) {
    const std::size_t at = rng.below(flows.size());
    links.remove_flow(ids[at]);
    links.update();
    flows[at] = any_flow(rng, 60);
    ids[at] = links.add_flow(flows[at].terms(), flows[at].uses);
    links.update();
    if (step % 10 != 9) continue;
    SharedLinks fresh;
    for (int r = 0; r < 60; ++r) fresh.add_resource(BytesPerSecond(2e10));
    std::vector<FlowId> again;
    for (const PlainFlow& flow : flows) again.push_back(fresh.add_flow(flow.terms(), flow.uses));
    fresh.update();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      ASSERT_NEAR(links.rate(ids[f]) / fresh.rate(again[f]), 1, kNear) << "step " << step;
    }
  }
}

TEST(SharedLinks, no_link_is_above_its_capacity_and_nobody_can_rise_but_by_lowering_a_smaller_one) {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    Churn world(seed, 6);
    for (int step = 0; step < 80; ++step) {
      world.change();
      world.links().update();
    }
    for (std::size_t r = 0; r < world.capacities().size(); ++r) {
      EXPECT_LE(world.load(r), world.capacities()[r] * (1 + kNear));
      EXPECT_NEAR(world.links().load(ResourceId::at(r)).value(), world.load(r), 1);
    }
    for (std::size_t f = 0; f < world.flows().size(); ++f) {
      const PlainFlow& flow = world.flows()[f];
      const double rate = world.links().rate(world.ids()[f]).value();
      EXPECT_LE(rate, flow.demand);
      if (rate >= flow.demand) continue;
      EXPECT_TRUE(std::ranges::any_of(
          flow.uses, [&](const ResourceUse& use) { return world.is_bottleneck(f, use.resource); }))
          << "seed " << seed << ", flow " << f;
    }
  }
}

TEST(SharedLinks, a_tolerance_keeps_capacities_and_stays_near_the_fair_rates_with_less_to_fill) {
  constexpr double kTolerance = 1e-2;
  std::size_t filled = 0;
  std::size_t filled_exactly = 0;
  for (std::uint64_t seed = 40; seed < 50; ++seed) {
    Churn world(seed, 12, kTolerance);
    Churn exact(seed, 12);
    for (int step = 0; step < 60; ++step) {
      world.change();
      exact.change();
      world.links().update();
      exact.links().update();
      filled += world.links().filled();
      filled_exactly += exact.links().filled();
      for (std::size_t f = 0; f < world.flows().size(); ++f) {
        const double fair = exact.links().rate(exact.ids()[f]).value();
        ASSERT_NEAR(world.links().rate(world.ids()[f]).value(), fair, 5 * kTolerance * fair + 1e3)
            << "seed " << seed << ", step " << step << ", flow " << f;
      }
      for (std::size_t r = 0; r < world.capacities().size(); ++r) {
        ASSERT_LE(world.load(r), world.capacities()[r] * (1 + kNear) + 1e-3);
      }
    }
  }
  EXPECT_LT(filled, filled_exactly);
}

TEST(SharedLinks, with_all_flows_gone_every_link_is_empty_and_a_new_one_gets_all) {
  Churn world(7, 5);
  for (int step = 0; step < 200; ++step) {
    world.change();
    world.links().update();
  }
  for (std::size_t r = 0; r < 5; ++r) {
    world.links().set_capacity(ResourceId::at(r), BytesPerSecond(7e9));
  }
  while (!world.flows().empty()) {
    world.remove(world.flows().size() / 2);
    world.links().update();
  }
  EXPECT_EQ(world.links().flow_count(), 0U);
  for (std::size_t r = 0; r < 5; ++r) {
    EXPECT_EQ(world.links().load(ResourceId::at(r)).value(), 0) << "exactly";
    const FlowId lone = world.links().add_flow({}, std::vector{use_of(ResourceId::at(r))});
    world.links().update();
    EXPECT_EQ(world.links().rate(lone).value(), 7e9);
  }
}

TEST(SharedLinks, the_order_in_which_flows_come_does_not_matter) {
  Rng rng(3);
  std::vector<PlainFlow> flows;
  for (int i = 0; i < 40; ++i) flows.push_back(any_flow(rng, 8));
  std::vector<double> first;
  for (int order = 0; order < 5; ++order) {
    std::vector<std::size_t> at(flows.size());
    std::iota(at.begin(), at.end(), std::size_t{0});
    for (std::size_t i = at.size(); order > 0 && i > 1; --i) std::swap(at[i - 1], at[rng.below(i)]);
    SharedLinks links;
    for (int r = 0; r < 8; ++r) links.add_resource(BytesPerSecond(1e10 + 1e9 * r));
    std::vector<double> rates(flows.size());
    std::vector<FlowId> ids(flows.size());
    for (const std::size_t i : at) {
      ids[i] = links.add_flow(flows[i].terms(), flows[i].uses);
      if (order % 2 == 0) links.update();
    }
    links.update();
    for (std::size_t i = 0; i < flows.size(); ++i) rates[i] = links.rate(ids[i]).value();
    if (first.empty()) first = rates;
    for (std::size_t i = 0; i < flows.size(); ++i) EXPECT_NEAR(rates[i] / first[i], 1, 1e-9);
  }
}

TEST(SharedLinks, the_same_calls_give_the_same_bits) {
  Churn one(11, 6);
  Churn two(11, 6);
  for (int step = 0; step < 100; ++step) {
    one.change();
    two.change();
    const std::span<const FlowId> reported = one.links().update();
    const std::span<const FlowId> again = two.links().update();
    ASSERT_TRUE(std::ranges::equal(reported, again));
    for (const FlowId id : one.ids()) ASSERT_EQ(one.links().rate(id), two.links().rate(id));
  }
}

TEST(SharedLinks, an_update_reports_exactly_those_whose_rate_is_another) {
  Churn world(5, 6);
  std::vector<double> known(1000, 0);
  for (int step = 0; step < 150; ++step) {
    world.change();
    const std::span<const FlowId> reported = world.links().update();
    EXPECT_TRUE(std::ranges::is_sorted(reported));
    for (const FlowId id : reported) known[id.value()] = world.links().rate(id).value();
    for (const FlowId id : world.ids()) {
      const double rate = world.links().rate(id).value();
      // A reused id starts from nothing; flows not reported keep their last rate.
      if (std::ranges::find(reported, id) != reported.end() || rate == 0) continue;
      ASSERT_NEAR(known[id.value()], rate, 2e-6 * rate);
    }
  }
}

TEST(SharedLinks, an_event_is_not_felt_where_nothing_binds) {
  SharedLinks links;
  const ResourceId core = links.add_resource(BytesPerSecond(1e6));
  std::vector<ResourceId> leaves;
  for (int i = 0; i < 100; ++i) {
    leaves.push_back(links.add_resource(BytesPerSecond(10)));
    for (int k = 0; k < 3; ++k) {
      links.add_flow({}, std::vector{use_of(core), use_of(leaves.back())});
    }
  }
  links.update();
  EXPECT_EQ(links.filled(), 300U);
  // The core has room: only the four flows under the leaf are filled.
  links.add_flow({}, std::vector{use_of(core), use_of(leaves[50])});
  EXPECT_EQ(links.update().size(), 4U);
  EXPECT_EQ(links.filled(), 4U);
  EXPECT_TRUE(links.update().empty());
  EXPECT_EQ(links.filled(), 0U);
}

TEST(SharedLinks, a_lost_link_stops_its_flows_and_no_others) {
  SharedLinks links;
  const ResourceId lost = links.add_resource(BytesPerSecond(10));
  const ResourceId other = links.add_resource(BytesPerSecond(10));
  const FlowId on_lost = links.add_flow({}, std::vector{use_of(lost)});
  const FlowId on_both = links.add_flow({}, std::vector{use_of(lost), use_of(other)});
  const FlowId on_other = links.add_flow({}, std::vector{use_of(other)});
  links.update();
  links.set_capacity(lost, BytesPerSecond(0));
  links.update();
  EXPECT_EQ(links.rate(on_lost).value(), 0);
  EXPECT_EQ(links.rate(on_both).value(), 0);
  EXPECT_EQ(links.rate(on_other).value(), 10);
  links.set_capacity(lost, BytesPerSecond(10));
  links.update();
  EXPECT_EQ(links.rate(on_both).value(), 5);
}

}  // namespace
}  // namespace orrery

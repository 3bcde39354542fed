#include "scheduler/tenants/fair_order.hpp"

#include <gtest/gtest.h>

#include <set>

#include "scheduler/tenants/tenants_test.hpp"

namespace orrery {
namespace {

const std::vector<std::int64_t> kCapacity{128, 64};

// The order computed from its definition.
class NaiveOrder {
 public:
  NaiveOrder(const TenantUsage& usage, const std::vector<Waiting>& waiting)
      : usage_(usage), tree_(usage.tree()), waiting_(waiting) {}

  [[nodiscard]] std::optional<TenantId> next() const {
    TenantId at = TenantTree::root();
    while (!tree_.is_leaf(at)) {
      std::optional<TenantId> best;
      for (std::uint32_t i = 0; i < tree_.children(at); ++i) {
        const TenantId child(tree_.first_child(at).value() + i);
        if (types_of(child).empty()) continue;
        if (!best || key(child) < key(*best)) best = child;
      }
      if (!best) return std::nullopt;
      at = *best;
    }
    return at;
  }

 private:
  [[nodiscard]] std::set<FleetTypeId> types_of(TenantId id) const {
    std::set<FleetTypeId> types;
    for (const Waiting& entry : waiting_) {
      if (tree_.common_ancestor(entry.tenant, id) == id) types.insert(entry.type);
    }
    return types;
  }

  [[nodiscard]] std::pair<bool, double> key(TenantId id) const {
    bool below = false;
    for (const FleetTypeId type : types_of(id)) {
      for (const FleetTypeId column : {type, kAllTypes}) {
        const auto guarantee = tree_.guarantee(id, column);
        below = below || (guarantee && usage_.used(id, column) < *guarantee);
      }
    }
    double share = 0;
    for (const FleetTypeId type : {kH100, kA100}) {
      const double held = static_cast<double>(usage_.used(id, type)) + usage_.recent(id, type);
      share = std::max(share, held / static_cast<double>(kCapacity[type.value()]));
    }
    return {!below, share / tree_.weight(id)};
  }

  const TenantUsage& usage_;
  const TenantTree& tree_;
  const std::vector<Waiting>& waiting_;
};

TEST(FairOrder, PutsATenantBelowItsGuaranteeFirst) {
  const TenantTree tree = tree_of("- name: a\n- {name: b, guarantee: {h100: 8}}\n");
  TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  const TenantId b = tenant(tree, "b");
  usage.apply({b, kH100, 0, 4});
  FairOrder order(usage, kCapacity, std::vector<Waiting>{{a, kH100}, {b, kH100}});
  EXPECT_EQ(order.next(), b);
  usage.apply({b, kH100, 0, 4});
  order.usage_changed(b);
  EXPECT_EQ(order.next(), a);
}

TEST(FairOrder, CountsAGuaranteeOnlyForATypeThatJobsWaitFor) {
  const TenantTree tree = tree_of("- name: a\n- {name: b, guarantee: {a100: 8}}\n");
  TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  const TenantId b = tenant(tree, "b");
  const FairOrder order(usage, kCapacity, std::vector<Waiting>{{a, kH100}, {b, kH100}});
  EXPECT_EQ(order.next(), a);
  const FairOrder both(usage, kCapacity, std::vector<Waiting>{{a, kH100}, {b, kH100}, {b, kA100}});
  EXPECT_EQ(both.next(), b);
}

TEST(FairOrder, SharesByWeightOverTheMostUsedType) {
  const TenantTree tree = tree_of("- {name: a, weight: 2}\n- name: b\n");
  TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  const TenantId b = tenant(tree, "b");
  usage.apply({a, kH100, 0, 64});  // half of the type, over weight 2
  usage.apply({b, kA100, 0, 15});  // 15 of 64
  FairOrder order(usage, kCapacity, std::vector<Waiting>{{a, kH100}, {b, kH100}});
  EXPECT_EQ(order.next(), b);
  usage.apply({b, kA100, 0, 2});
  order.usage_changed(b);
  EXPECT_EQ(order.next(), a);
}

TEST(FairOrder, RemembersWhatWasHeldLately) {
  const TenantTree tree = tree_of("- name: a\n- name: b\n");
  TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  const TenantId b = tenant(tree, "b");
  usage.apply({a, kH100, 0, 64});
  usage.advance(Duration::minutes(10));
  usage.apply({a, kH100, 0, -64});
  const FairOrder order(usage, kCapacity, std::vector<Waiting>{{a, kH100}, {b, kH100}});
  EXPECT_EQ(order.next(), b);
}

TEST(FairOrder, BreaksTiesByIdAndEnds) {
  const TenantTree tree = tree_of("- name: a\n- name: b\n- name: c\n");
  const TenantUsage usage(tree);
  const TenantId a = tenant(tree, "a");
  const TenantId c = tenant(tree, "c");
  FairOrder order(usage, kCapacity, std::vector<Waiting>{{c, kH100}, {a, kA100}});
  EXPECT_EQ(order.next(), a);
  order.exhausted(a);
  EXPECT_EQ(order.next(), c);
  order.exhausted(c);
  EXPECT_EQ(order.next(), std::nullopt);
  order.exhausted(c);
  EXPECT_EQ(order.next(), std::nullopt);
}

TEST(FairOrder, SharesBetweenGroupsBeforeInsideThem) {
  const TenantTree tree = tree_of("- name: g\n- name: g/x\n- name: g/y\n- name: h\n");
  TenantUsage usage(tree);
  const TenantId x = tenant(tree, "g/x");
  const TenantId y = tenant(tree, "g/y");
  const TenantId h = tenant(tree, "h");
  FairOrder order(usage, kCapacity, std::vector<Waiting>{{x, kH100}, {y, kH100}, {h, kH100}});
  std::vector<std::string> served;
  for (int i = 0; i < 8; ++i) {
    const TenantId next = order.next().value_or(TenantTree::root());
    served.push_back(tree.path(next));
    usage.apply({next, kH100, 0, 8});
    order.usage_changed(next);
  }
  EXPECT_EQ(served, (std::vector<std::string>{"g/x", "h", "g/y", "h", "g/x", "h", "g/y", "h"}));
}

TEST(FairOrder, IsTheOrderOfANaiveRecomputation) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 2 + rng.below(40));
    TenantUsage usage(tree);
    std::vector<TenantId> leaves;
    std::vector<Waiting> waiting;
    for (std::uint32_t i = 1; i < tree.size(); ++i) {
      const TenantId id(i);
      if (!tree.is_leaf(id)) continue;
      leaves.push_back(id);
      usage.apply({id, kA100, 0, static_cast<std::int64_t>(rng.below(4))});
      const std::uint64_t types = rng.below(4);
      if ((types & 1) != 0) waiting.push_back({id, kH100});
      if ((types & 2) != 0) waiting.push_back({id, kA100});
    }
    usage.advance(Duration::minutes(30));
    FairOrder order(usage, kCapacity, waiting);
    for (int step = 0; step < 200 && !waiting.empty(); ++step) {
      const std::optional<TenantId> next = order.next();
      ASSERT_EQ(next, NaiveOrder(usage, waiting).next()) << "seed " << seed << " step " << step;
      const TenantId id = rng.below(2) == 0 ? *next : leaves[rng.below(leaves.size())];
      if (rng.below(6) == 0) {
        order.exhausted(id);
        std::erase_if(waiting, [&](const Waiting& entry) { return entry.tenant == id; });
        continue;
      }
      const bool gives = usage.used(id, kH100) > 0 && rng.below(3) == 0;
      const auto devices = static_cast<std::int64_t>(1 + rng.below(8));
      usage.apply({id, kH100, 0, gives ? -usage.used(id, kH100) : devices});
      order.usage_changed(id);
    }
    EXPECT_EQ(order.next(), NaiveOrder(usage, waiting).next()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery

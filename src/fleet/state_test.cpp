#include <gtest/gtest.h>

#include <atomic>

#include <mutex>
#include <set>
#include <thread>

#include "base/rng.hpp"
#include "fleet/cow_array.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

/// What the counts of a view must be, by counting nodes.
FreeCount counted(const FleetView& view, DomainId domain, FleetTypeId type) {
  FreeCount count;
  const Topology& topology = view.topology();
  const Domain& d = topology.domain(domain);
  for (std::uint32_t i = 0; i < d.nodes; ++i) {
    const NodeId node(d.first_node.value() + i);
    if (topology.group(node).type != type) continue;
    const std::uint32_t available = view.node(node).available();
    count.devices += available;
    count.nodes += available == topology.group(node).devices ? 1 : 0;
  }
  return count;
}

void expect_counts_right(const FleetView& view) {
  const Topology& topology = view.topology();
  for (std::uint32_t d = 0; d < topology.domains().size(); ++d) {
    for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
      EXPECT_EQ(view.free(DomainId(d), FleetTypeId(t)), counted(view, DomainId(d), FleetTypeId(t)));
    }
  }
}

Fleet mixed_fleet() {
  return Fleet(built(one_hall(
      "    - count: 2\n      racks:\n      - count: 3\n        cooling: in-row-or-dense-air\n      "
      "  nodes: [{type: dgx-h100, count: 2}, {type: mi300x-oam-8}]\n      - name: small\n        "
      "nodes: [{type: l4-4, count: 5}]\n")));
}

NodeState random_state(const Topology& topology, NodeId node, Rng& rng) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - topology.group(node).devices);
  const auto words = enum_words(NodeHealth{});
  NodeState state;
  state.free_mask = rng.below(3) == 0 ? all : rng.next_u64() & all;
  state.health = rng.below(2) == 0 ? NodeHealth::kReady : words[rng.below(words.size())].value;
  return state;
}

TEST(Fleet, StartsReadyAndFree) {
  const Fleet fleet = mixed_fleet();
  const auto h100 = fleet.topology().find_type("h100");
  ASSERT_TRUE(h100);
  EXPECT_EQ(fleet.view().free(Topology::root(), *h100), (FreeCount{96, 12}));
  expect_counts_right(fleet.view());
}

TEST(Fleet, OnlyReadyNodesCountAsFree) {
  Fleet fleet = mixed_fleet();
  const FleetTypeId type = *fleet.topology().find_type("h100");
  fleet.set_health(NodeId(0), NodeHealth::kSuspect);
  fleet.set_free(NodeId(1), 0b101);
  EXPECT_EQ(fleet.view().free(Topology::root(), type), (FreeCount{82, 10}));
  fleet.set_health(NodeId(0), NodeHealth::kReady);
  EXPECT_EQ(fleet.view().free(Topology::root(), type), (FreeCount{90, 11}));
}

TEST(Fleet, FreeCountsAlwaysEqualCountingTheNodes) {
  Fleet fleet = mixed_fleet();
  Rng rng(7);
  std::vector<std::shared_ptr<const FleetSnapshot>> kept;
  for (int step = 0; step < 2000; ++step) {
    const NodeId node(static_cast<std::uint32_t>(rng.below(fleet.topology().node_count())));
    fleet.set_node(node, random_state(fleet.topology(), node, rng));
    if (rng.below(10) == 0) kept.push_back(fleet.publish());
    if (kept.size() > 5) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(rng.below(5)));
    if (step % 100 == 0) expect_counts_right(fleet.view());
  }
  for (const auto& snapshot : kept) expect_counts_right(snapshot->view());
}

TEST(Fleet, ASnapshotShowsItsInstantWhateverComesAfter) {
  Fleet fleet = mixed_fleet();
  Rng rng(8);
  struct Kept {
    std::shared_ptr<const FleetSnapshot> snapshot;
    std::vector<NodeState> nodes;
    LinkState link;
  };
  std::vector<Kept> all;
  for (int step = 0; step < 300; ++step) {
    for (int i = 0; i < 5; ++i) {
      const NodeId node(static_cast<std::uint32_t>(rng.below(fleet.topology().node_count())));
      fleet.set_node(node, random_state(fleet.topology(), node, rng));
    }
    Kept kept{fleet.publish(), {}, {}};
    for (std::uint32_t i = 0; i < fleet.topology().node_count(); ++i) {
      kept.nodes.push_back(fleet.view().node(NodeId(i)));
    }
    all.push_back(std::move(kept));
    if (all.size() > 8) all.erase(all.begin() + static_cast<std::ptrdiff_t>(rng.below(8)));
    for (const Kept& old : all) {
      for (std::uint32_t i = 0; i < old.nodes.size(); ++i) {
        ASSERT_EQ(old.snapshot->view().node(NodeId(i)), old.nodes[i]);
      }
    }
  }
}

TEST(Fleet, ASnapshotOutlivesItsFleet) {
  std::shared_ptr<const FleetSnapshot> snapshot;
  {
    Fleet fleet = mixed_fleet();
    fleet.set_free(NodeId(3), 1);
    snapshot = fleet.publish();
  }
  EXPECT_EQ(snapshot->view().node(NodeId(3)).free_mask, 1u);
  EXPECT_EQ(snapshot->view().topology().name(), "test");
}

TEST(Fleet, LinksKeepHealthAndLoad) {
  Fleet fleet(built(one_hall("    - racks: [{nodes: [{type: dgx-h100, count: 2}]}]\n",
                             "  fabrics: [{type: ib-ndr, topology: fat-tree}]\n")));
  ASSERT_GT(fleet.topology().link_count(), 3u);
  const auto before = fleet.publish();
  fleet.set_link(LinkId(3), {0.5F, 0.25F});
  EXPECT_EQ(fleet.view().link(LinkId(3)), (LinkState{0.5F, 0.25F}));
  EXPECT_EQ(before->view().link(LinkId(3)), LinkState{});
}

TEST(FleetOverlay, SupposesWithoutTouchingTheFleet) {
  Fleet fleet = mixed_fleet();
  const FleetTypeId type = *fleet.topology().find_type("h100");
  fleet.set_free(NodeId(0), 0);
  FleetOverlay supposed(fleet.view());
  supposed.set_node(NodeId(0), {0xff, NodeHealth::kReady});
  EXPECT_EQ(supposed.view().free(Topology::root(), type), (FreeCount{96, 12}));
  expect_counts_right(supposed.view());

  FleetOverlay on_top(supposed.view());
  on_top.set_node(NodeId(1), {0, NodeHealth::kReady});
  EXPECT_EQ(on_top.view().free(Topology::root(), type), (FreeCount{88, 11}));
  EXPECT_EQ(fleet.view().free(Topology::root(), type), (FreeCount{88, 11}));
  EXPECT_EQ(fleet.view().node(NodeId(1)).free_mask, 0xffu);
  expect_counts_right(on_top.view());
}

TEST(FleetThreads, ReadSnapshotsWhileTheFleetChanges) {
  Fleet fleet = mixed_fleet();
  std::mutex guard;
  std::shared_ptr<const FleetSnapshot> latest = fleet.publish();
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> reads = 0;
  const auto reader = [&] {
    while (!done) {
      const auto snapshot = [&] {
        const std::lock_guard lock(guard);
        return latest;
      }();
      const FleetView view = snapshot->view();
      for (std::uint32_t t = 0; t < view.topology().type_count(); ++t) {
        if (view.free(Topology::root(), FleetTypeId(t)) !=
            counted(view, Topology::root(), FleetTypeId(t))) {
          ++wrong;
        }
      }
      ++reads;
    }
  };
  std::thread first(reader);
  std::thread second(reader);
  Rng rng(9);
  for (int step = 0; step < 3000 || reads < 20; ++step) {
    const NodeId node(static_cast<std::uint32_t>(rng.below(fleet.topology().node_count())));
    fleet.set_node(node, random_state(fleet.topology(), node, rng));
    if (step % 3 != 0) continue;
    auto next = fleet.publish();
    const std::lock_guard lock(guard);
    latest = std::move(next);
  }
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CowArray, ReusesPagesOnceNobodyReadsThem) {
  CowArray<int, 4> array(64);
  Generations generations;
  std::set<const void*> pages;
  for (int i = 0; i < 1000; ++i) {
    generations.collect();
    array.collect(generations);
    const Generations::Lease lease = generations.publish();
    array.edit(5, generations) = i;
    pages.insert(array.directory()[1]);
  }
  EXPECT_LE(pages.size(), 3u);
  EXPECT_EQ(array[5], 999);
}

}  // namespace
}  // namespace orrery

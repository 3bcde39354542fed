#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/numbers/rng.hpp"
#include "fleet/cow_array.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

/// Returns the expected counts of a view, by counting nodes.
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

/// Returns at index k the nodes with k available devices, by counting nodes.
std::vector<std::uint32_t> counted_by_available(const FleetView& view, DomainId domain,
                                                FleetTypeId type) {
  const Topology& topology = view.topology();
  const Domain& d = topology.domain(domain);
  std::vector<std::uint32_t> nodes(topology.node_devices_max(type) + 1);
  bool any = false;
  for (std::uint32_t i = 0; i < d.nodes; ++i) {
    const NodeId node(d.first_node.value() + i);
    if (topology.group(node).type != type) continue;
    ++nodes[view.node(node).available()];
    any = true;
  }
  return any ? nodes : std::vector<std::uint32_t>();
}

void expect_counts_right(const FleetView& view, DomainId domain, FleetTypeId type) {
  EXPECT_EQ(view.free(domain, type), counted(view, domain, type));
  const auto nodes = view.nodes_by_available(domain, type);
  const auto expected = counted_by_available(view, domain, type);
  EXPECT_EQ(std::vector(nodes.begin(), nodes.end()), expected);
  for (const std::uint32_t unit : {1U, 2U, 3U, 4U, 8U, 9U}) {
    std::uint32_t units = 0;
    for (std::uint32_t k = 0; k < expected.size(); ++k) units += expected[k] * (k / unit);
    EXPECT_EQ(view.units(domain, type, unit), units) << "of " << unit;
  }
}

void expect_counts_right(const FleetView& view) {
  const Topology& topology = view.topology();
  for (std::uint32_t d = 0; d < topology.domains().size(); ++d) {
    for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
      expect_counts_right(view, DomainId(d), FleetTypeId(t));
    }
  }
}

/// Expects that two views of one topology show equal states.
void expect_same(const FleetView& a, const FleetView& b) {
  const Topology& topology = a.topology();
  for (std::uint32_t i = 0; i < topology.node_count(); ++i) {
    EXPECT_EQ(a.node(NodeId(i)), b.node(NodeId(i))) << "node " << i;
  }
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    EXPECT_EQ(a.link(LinkId(i)), b.link(LinkId(i))) << "link " << i;
  }
  int shared = 0;
  for (std::uint32_t i = 0; i < topology.device_count(); ++i) {
    EXPECT_EQ(a.shared(DeviceId(i)), b.shared(DeviceId(i))) << "device " << i;
    shared += a.shared(DeviceId(i)) != 0 ? 1 : 0;
  }
  EXPECT_EQ(a.any_shared(), shared > 0);
  EXPECT_EQ(b.any_shared(), shared > 0);
  for (std::uint32_t d = 0; d < topology.domains().size(); ++d) {
    for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
      const auto nodes_a = a.nodes_by_available(DomainId(d), FleetTypeId(t));
      const auto nodes_b = b.nodes_by_available(DomainId(d), FleetTypeId(t));
      EXPECT_TRUE(std::ranges::equal(nodes_a, nodes_b)) << "domain " << d << " type " << t;
      EXPECT_EQ(a.free(DomainId(d), FleetTypeId(t)), b.free(DomainId(d), FleetTypeId(t)));
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
  state.used_cpu = static_cast<std::uint32_t>(rng.below(100'000));
  state.used_memory = static_cast<std::uint32_t>(rng.below(1 << 20));
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

TEST(Fleet, CountsNodesByAvailableDevices) {
  Fleet fleet = mixed_fleet();
  const FleetTypeId type = *fleet.topology().find_type("h100");
  const DomainId rack = fleet.topology().place(NodeId(0)).rack;
  fleet.set_free(NodeId(0), 0b1101'1010);
  EXPECT_EQ(fleet.view().nodes_with(rack, type, 5), 1u);
  EXPECT_EQ(fleet.view().nodes_with(rack, type, 8), 1u);
  EXPECT_EQ(fleet.view().nodes_with(rack, type, 9), 0u);
  EXPECT_EQ(fleet.view().units(rack, type, 1), 13u);
  EXPECT_EQ(fleet.view().units(rack, type, 4), 3u);
  EXPECT_EQ(fleet.view().units(rack, type, 8), 1u);
  fleet.set_health(NodeId(0), NodeHealth::kDraining);
  EXPECT_EQ(fleet.view().nodes_with(rack, type, 0), 1u);
  EXPECT_EQ(fleet.view().units(rack, type, 4), 2u);
  const FleetTypeId elsewhere = *fleet.topology().find_type("nvidia-l4");
  EXPECT_EQ(fleet.view().units(rack, elsewhere, 1), 0u);
  EXPECT_TRUE(fleet.view().nodes_by_available(rack, elsewhere).empty());
}

/// Returns the catalog with a node of eight L4 beside the one of four.
const Catalog& catalog_with_eight_l4() {
  static const Catalog kCatalog = [] {
    std::vector<EmbeddedFile> files(builtin_catalog().begin(), builtin_catalog().end());
    files.push_back({"more.yaml",
                     "apiVersion: orrery/v1\nkind: Catalog\nname: more\nnodes:\n"
                     "- {id: l4-8, like: l4-4, accelerators_per_node: 8}\n"});
    return *Catalog::load(files, {});
  }();
  return kCatalog;
}

TEST(Fleet, CountsNodesOfOneTypeAndTwoSizes) {
  Fleet fleet(*build_topology(
      *spec_of(one_hall(
          "    - racks:\n      - nodes: [{type: l4-4, count: 2}, {type: l4-8, count: 3}]\n")),
      catalog_with_eight_l4()));
  const FleetTypeId type = *fleet.topology().find_type("nvidia-l4");
  EXPECT_EQ(fleet.topology().node_devices_max(type), 8u);
  EXPECT_EQ(fleet.view().free(Topology::root(), type), (FreeCount{32, 5}));
  EXPECT_EQ(fleet.view().nodes_with(Topology::root(), type, 4), 2u);
  fleet.set_free(NodeId(0), 0b11);
  fleet.set_free(NodeId(4), 0b1111);
  EXPECT_EQ(fleet.view().free(Topology::root(), type), (FreeCount{26, 3}));
  expect_counts_right(fleet.view());
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

TEST(Fleet, ANodeKeepsItsHostResourcesWhenHealthOrDevicesChange) {
  Fleet fleet = mixed_fleet();
  NodeState state = fleet.view().node(NodeId(2));
  state.used_cpu = 12'500;
  state.used_memory = 4096;
  state.used_cxl = 3;
  state.used_disk = 9;
  fleet.set_node(NodeId(2), state);
  fleet.set_free(NodeId(2), 0b11);
  fleet.set_health(NodeId(2), NodeHealth::kDraining);
  state.free_mask = 0b11;
  state.health = NodeHealth::kDraining;
  EXPECT_EQ(fleet.view().node(NodeId(2)), state);
}

TEST(Fleet, GroupsSayWhatTheirHostsHave) {
  const Topology topology =
      built(one_hall("    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: "
                     "dgx-h100}, {type: "
                     "l4-4}]\n"));
  // Two Xeon 8480C of 56 cores, 2 TiB and 30.72 TB; the L4 server's processor is not named.
  EXPECT_EQ(topology.group(NodeId(0)).host,
            (HostResources{.cpu = 112'000, .memory = 2'097'152, .cxl = 0, .disk = 28'610}));
  EXPECT_EQ(topology.group(NodeId(1)).host,
            (HostResources{.cpu = 0, .memory = 524'288, .cxl = 0, .disk = 7'171}));
}

TEST(Fleet, SharedDevicesAreKeptApartFromFreeOnes) {
  Fleet fleet = mixed_fleet();
  const auto before = fleet.publish();
  fleet.set_free(NodeId(1), 0xfe);
  const DeviceId device = fleet.topology().place(NodeId(1)).first_device;
  fleet.set_shared(device, 1500);
  EXPECT_EQ(fleet.view().shared(device), 1500);
  EXPECT_EQ(fleet.view().shared(DeviceId(device.value() + 1)), 0);
  EXPECT_EQ(before->view().shared(device), 0);
  EXPECT_EQ(fleet.publish()->view().shared(device), 1500);

  FleetOverlay supposed(fleet.view());
  supposed.set_shared(device, 250);
  EXPECT_EQ(supposed.view().shared(device), 250);
  EXPECT_EQ(fleet.view().shared(device), 1500);
  supposed.reset(fleet.view());
  EXPECT_EQ(supposed.view().shared(device), 1500);
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

// Returns a fleet of nodes of two kinds, with two networks.
Fleet networked_fleet() {
  return Fleet(built(one_hall(
      "    - count: 20\n      racks:\n      - count: 4\n        cooling: in-row-or-dense-air\n    "
      "    nodes: [{type: dgx-h100, count: 4}]\n",
      "  fabrics: [{type: ib-ndr, topology: fat-tree}]\n")));
}

// Every edit is made in a separate fleet and in the topmost overlay of a stack at that time.
TEST(FleetOverlay, APileOfThemEqualsAFleetEditedTheSame) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    Rng rng(seed);
    Fleet base = networked_fleet();
    Fleet edited = networked_fleet();
    std::vector<std::unique_ptr<FleetOverlay>> pile;
    pile.push_back(std::make_unique<FleetOverlay>(base.view()));
    for (int step = 0; step < 400; ++step) {
      if (rng.below(100) == 0) {
        pile.push_back(std::make_unique<FleetOverlay>(pile.back()->view()));
      }
      const NodeId node(static_cast<std::uint32_t>(rng.below(base.topology().node_count())));
      const NodeState state = random_state(base.topology(), node, rng);
      const LinkId link(static_cast<std::uint32_t>(rng.below(base.topology().link_count())));
      const LinkState link_state{1, static_cast<float>(rng.below(8)) / 8};
      edited.set_node(node, state);
      pile.back()->set_node(node, state);
      edited.set_link(link, link_state);
      pile.back()->set_link(link, link_state);
      const DeviceId device(static_cast<std::uint32_t>(rng.below(base.topology().device_count())));
      edited.set_shared(device, static_cast<std::uint16_t>(step));
      pile.back()->set_shared(device, static_cast<std::uint16_t>(step));
    }
    expect_same(pile.back()->view(), edited.view());
    expect_counts_right(pile.back()->view());
    expect_same(base.view(), networked_fleet().view());
  }
}

/// Shares some of the devices that are not free.
void share_at_random(Fleet& fleet, NodeId node, Rng& rng) {
  const std::uint32_t first = fleet.topology().place(node).first_device.value();
  for (std::uint32_t i = 0; i < fleet.topology().group(node).devices; ++i) {
    const bool free = (fleet.view().node(node).free_mask >> i & 1) != 0;
    const auto share = static_cast<std::uint16_t>(rng.below(3) == 0 ? 1 + rng.below(kShareMax) : 0);
    fleet.set_shared(DeviceId(first + i), free ? std::uint16_t{0} : share);
  }
}

/// Takes all of the devices: free ones, and the unused shares of shared ones.
void take_one_by_one(FleetOverlay& fleet, const NodeDevices& at) {
  const std::uint32_t first = fleet.view().topology().place(at.node).first_device.value();
  for (std::uint32_t i = 0; i < fleet.view().topology().group(at.node).devices; ++i) {
    const DeviceId device(first + i);
    const bool taken = (at.devices >> i & 1) != 0;
    if (taken && fleet.view().shared(device) != 0) fleet.set_shared(device, kShareMax);
  }
  NodeState state = fleet.view().node(at.node);
  state.free_mask &= ~at.devices;
  fleet.set_node(at.node, state);
}

/// Frees some of the devices that are not free: all at once in one, node by node in the other.
void reveal_at_random(FleetOverlay& revealed, FleetOverlay& set, Rng& rng) {
  const Topology& topology = set.view().topology();
  std::vector<NodeDevices> devices;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    const NodeId at(node);
    NodeState state = set.view().node(at);
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - topology.group(at).devices);
    const std::uint64_t some = rng.below(4) == 0 ? rng.next_u64() : all;
    devices.push_back({at, all & ~state.free_mask & some});
    state.free_mask |= devices.back().devices;
    set.set_node(at, state);
  }
  revealed.reveal(devices);
}

// Uses lists like those of gangs, and lists with nodes that are duplicate, out of order or not
// ready.
TEST(FleetOverlay, HidingAndRevealingDevicesEqualsSettingNodeByNode) {
  Rng rng(6);
  Fleet fleet = mixed_fleet();
  const Topology& topology = fleet.topology();
  FleetOverlay hidden(fleet.view());
  FleetOverlay set(fleet.view());
  for (int round = 0; round < 200; ++round) {
    for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
      fleet.set_node(NodeId(node), random_state(topology, NodeId(node), rng));
      share_at_random(fleet, NodeId(node), rng);
    }
    hidden.reset(fleet.view());
    set.reset(fleet.view());
    std::vector<NodeDevices> devices;
    for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
      const bool any = round % 2 == 1;
      const NodeId at(any ? static_cast<std::uint32_t>(rng.below(topology.node_count())) : node);
      const std::uint64_t all = ~std::uint64_t{0} >> (64 - topology.group(at).devices);
      devices.push_back({at, rng.below(4) == 0 ? rng.next_u64() & all : all});
      take_one_by_one(set, devices.back());
    }
    hidden.hide(devices);
    expect_same(hidden.view(), set.view());
    expect_counts_right(hidden.view());
    reveal_at_random(hidden, set, rng);
    expect_same(hidden.view(), set.view());
    expect_counts_right(hidden.view());
  }
}

TEST(FleetOverlay, ResetGivesTheBaseAgain) {
  Rng rng(4);
  Fleet fleet = networked_fleet();
  FleetOverlay supposed(fleet.view());
  for (int pass = 0; pass < 5; ++pass) {
    for (int step = 0; step < 20; ++step) {
      const NodeId node(static_cast<std::uint32_t>(rng.below(fleet.topology().node_count())));
      supposed.set_node(node, random_state(fleet.topology(), node, rng));
      fleet.set_node(node, random_state(fleet.topology(), node, rng));
    }
    supposed.set_link(LinkId(static_cast<std::uint32_t>(pass)), {0.5F, 0});
    const auto snapshot = fleet.publish();
    supposed.reset(fleet.view());
    expect_same(supposed.view(), fleet.view());
  }
}

TEST(FleetOverlay, MovesToAnotherFleet) {
  const Fleet large = networked_fleet();
  const Fleet small = mixed_fleet();
  FleetOverlay supposed(large.view());
  supposed.set_node(NodeId(319), {});
  supposed.reset(small.view());
  expect_same(supposed.view(), small.view());
  supposed.set_node(NodeId(0), {});
  supposed.reset(large.view());
  expect_same(supposed.view(), large.view());
}

TEST(CowOverlay, UsesItsPagesAgain) {
  CowArray<int, 4> array(64);
  Generations generations;
  array.edit(5, generations) = 7;
  CowOverlay<CowArray<int, 4>> overlay;
  std::set<const void*> pages;
  for (int i = 0; i < 100; ++i) {
    overlay.reset(array.directory(), array.size());
    EXPECT_EQ(overlay.directory()[1], array.directory()[1]);
    overlay.edit(static_cast<std::size_t>(i % 64)) += 1;
    overlay.edit(5) += i;
    pages.insert(overlay.directory()[1]);
  }
  EXPECT_LE(pages.size(), 2u);
  EXPECT_EQ(array[5], 7);
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

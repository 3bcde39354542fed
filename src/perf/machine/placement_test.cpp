#include "perf/machine/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/generate.hpp"
#include "perf/repository_facts_test.hpp"
#include "perf/training/training_step.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

// Two scalable units of 32 DGX H100 under InfiniBand NDR, rail-optimised.
const Topology& superpod() {
  static const Topology kTopology = [] {
    const Result<FleetSpec> spec = generate_fleet(builtin_facts(), "dgx-superpod-h100", 64);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    Result<Topology> topology = build_topology(*spec, builtin_facts());
    EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
    return *std::move(topology);
  }();
  return kTopology;
}

std::vector<NodeDevices> ranks_on(const std::vector<std::uint32_t>& nodes, std::uint32_t devices) {
  std::vector<NodeDevices> gang;
  for (const std::uint32_t node : nodes) {
    gang.push_back({NodeId(node), (std::uint64_t{1} << devices) - 1});
  }
  return gang;
}

TEST(Placement, tells_a_unit_from_a_pod_and_whole_nodes_from_halves) {
  const Fleet fleet(superpod());
  const Placement near = placement_of(ranks_on({0, 1, 2, 3}, 8), fleet.view());
  EXPECT_EQ(near.domain_ranks, 8);
  EXPECT_EQ(near.tier, NetworkTier::kLeaf);
  EXPECT_EQ(near.scale_out_quality, 1);
  const Placement far = placement_of(ranks_on({0, 63}, 4), fleet.view());
  EXPECT_EQ(far.domain_ranks, 4);
  EXPECT_GT(far.tier, NetworkTier::kLeaf);
  EXPECT_EQ(placement_of(ranks_on({5}, 8), fleet.view()).tier, NetworkTier::kNode);
}

TEST(Placement, a_sick_or_busy_port_slows_the_whole_gang) {
  Fleet fleet(superpod());
  const FabricInstance& fabric = fleet.topology().fabrics()[0];
  const FabricLinkId port = fabric.graph.link_of_port({.node = 2, .port = 0});
  fleet.set_link(LinkId(fabric.first_link + port.value()), {.health = 0, .load = 0});
  const double ports = fabric.graph.ports_per_node();
  const Placement with = placement_of(ranks_on({1, 2}, 8), fleet.view());
  EXPECT_NEAR(with.scale_out_quality, (ports - 1) / ports, 1e-9);
  const Placement without = placement_of(ranks_on({0, 1}, 8), fleet.view());
  EXPECT_EQ(without.scale_out_quality, 1);
}

TEST(Placement, repricing_on_the_canonical_machine_changes_nothing_and_worse_links_cost_more) {
  const Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), {});
  const TrainingJob job{.model = &models->find("llama-3.1-70b")->model,
                        .sequence = Tokens{8192},
                        .global_batch = 256};
  const Accelerator* h100 = builtin_facts().find<Accelerator>("h100");
  const Result<Machine> machine =
      machine_of(builtin_facts(), {.accelerator = h100, .accelerators = 64});
  ASSERT_TRUE(machine);
  const Result<TrainingModel> model = TrainingModel::make(job, *machine, builtin_constants());
  ASSERT_TRUE(model);
  const ParallelPlan plan{
      .tp = 8, .pp = 2, .dp = 4, .zero = 1, .sequence_parallel = SequenceParallel::kOn};
  const double canonical = model->evaluate(plan).seconds;
  EXPECT_DOUBLE_EQ(model->reprice(plan, {.domain_ranks = 8}).total(), canonical);
  double last = canonical;
  for (const double quality : {0.8, 0.4, 0.1}) {
    const double now =
        model->reprice(plan, {.domain_ranks = 8, .scale_out_quality = quality}).total();
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_GT(model->reprice(plan, {.domain_ranks = 4}).total(), canonical)
      << "tensor-parallel groups that leave their domain";
}

double left_of(const LinkState& state) {
  return std::max(0.0, static_cast<double>(state.health) * (1 - static_cast<double>(state.load)));
}

/// One fabric's part of a gang, with a table of leaves and no regard to order.
struct ReferenceFootprint {
  const FabricInstance& fabric;
  const FleetView& view;
  std::vector<std::uint32_t> nodes = {};
  std::map<std::uint32_t, std::uint32_t> ports_below = {};
  NetworkTier tier = NetworkTier::kNode;
  double quality = 1;

  [[nodiscard]] double left(FabricLinkId link) const {
    return left_of(view.link(LinkId(fabric.first_link + link.value())));
  }

  void add(std::uint32_t node) {
    const std::uint32_t ports = fabric.graph.ports_per_node();
    double sum = 0;
    for (std::uint32_t port = 0; port < ports; ++port) {
      sum += left(fabric.graph.link_of_port({node, port}));
      ++ports_below[fabric.graph.leaf_of({node, port}).value()];
    }
    if (ports > 0) quality = std::min(quality, sum / ports);
    if (!nodes.empty()) tier = std::max(tier, fabric.graph.tier_between(nodes.front(), node));
    nodes.push_back(node);
  }

  void add_uplinks() {
    for (const auto& [leaf, ports] : ports_below) {
      const Fabric::Uplinks up = fabric.graph.uplinks(SwitchIndex(leaf));
      if (tier < NetworkTier::kSpine || up.uppers.empty()) continue;
      double carried = 0;
      for (std::uint32_t i = 0; i < up.uppers.size(); ++i) {
        carried += up.cables[i] * left(FabricLinkId(up.first.value() + i));
      }
      const double sent = ports * fabric.graph.port_bandwidth().value();
      quality = std::min(quality, carried * fabric.graph.cable_bandwidth().value() / sent);
    }
    quality = std::clamp(quality, 1e-3, 1.0);
  }
};

/// placement_of by look-ups in tables, device by device.
Placement reference_placement(const std::vector<NodeDevices>& gang, const FleetView& view) {
  const Topology& topology = view.topology();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> domains;
  for (const NodeDevices& part : gang) {
    const NodeGroup& group = topology.group(part.node);
    for (std::uint32_t i = 0; i < group.devices; ++i) {
      if ((part.devices >> i & 1) == 0) continue;
      const bool several = group.scale_up_devices > group.devices;
      ++domains[{topology.place(part.node).scale_up_first.value(),
                 several || group.scale_up_devices == 1 ? 0 : i / group.scale_up_devices}];
    }
  }
  Placement placement{.domain_ranks = INFINITY, .tier = NetworkTier::kNode};
  for (const auto& [domain, devices] : domains) {
    placement.domain_ranks = std::min<double>(placement.domain_ranks, devices);
  }
  if (gang.size() <= 1) return placement;
  bool joined = false;
  for (const FabricInstance& fabric : topology.fabrics()) {
    ReferenceFootprint footprint{fabric, view};
    for (const NodeDevices& part : gang) {
      const auto at = std::find(fabric.nodes.begin(), fabric.nodes.end(), part.node);
      if (at == fabric.nodes.end()) continue;
      footprint.add(static_cast<std::uint32_t>(at - fabric.nodes.begin()));
    }
    footprint.add_uplinks();
    joined = joined || footprint.nodes.size() == gang.size();
    placement.tier = std::max(placement.tier, footprint.tier);
    placement.scale_out_quality = std::min(placement.scale_out_quality, footprint.quality);
  }
  if (!joined) placement.tier = NetworkTier::kNone;
  return placement;
}

std::vector<NodeDevices> random_gang(const Topology& topology, Rng& rng) {
  const std::uint32_t count = topology.node_count();
  const auto first = static_cast<std::uint32_t>(rng.below(count));
  const auto span = 1 + static_cast<std::uint32_t>(rng.below(count - first));
  const std::uint64_t one_in = 1 + rng.below(4);
  std::vector<NodeDevices> gang;
  for (std::uint32_t n = first; n < first + span; ++n) {
    const std::uint32_t devices = topology.group(NodeId(n)).devices;
    if (devices == 0 || rng.below(one_in) != 0) continue;
    const std::uint64_t all = (std::uint64_t{1} << devices) - 1;
    const std::uint64_t some = rng.below(3) == 0 ? rng.next_u64() & all : all;
    gang.push_back({NodeId(n), some == 0 ? all : some});
  }
  if (gang.empty()) gang.push_back({NodeId(first), 1});
  return gang;
}

Result<Topology> example(const std::string& name) {
  const Result<FleetSpec> spec =
      load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name + ".yaml");
  EXPECT_TRUE(spec) << name;
  return build_topology(*spec, builtin_facts());
}

/// 48 DGX H100 on a network of this kind.
Result<Topology> network_of_kind(const std::string& kind) {
  const Result<Document> document = Document::parse(
      "apiVersion: orrery/v1\nkind: Fleet\nname: test\nsites:\n- name: site\n  halls:\n"
      "  - name: hall\n    pods:\n    - racks: [{count: 12, cooling: in-row-or-dense-air, "
      "nodes: [{type: dgx-h100, count: 4}]}]\n  fabrics:\n  - {name: f, type: ib-ndr, "
      "topology: " +
          kind + "}\n",
      "fleet.yaml");
  const Result<FleetSpec> spec = read_fleet_spec(*document);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  return build_topology(*spec, builtin_facts());
}

void expect_like_reference(Topology topology, const std::string& name) {
  Fleet fleet(std::move(topology));
  Rng rng(11);
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) {
      fleet.set_link(LinkId(static_cast<std::uint32_t>(rng.below(fleet.topology().link_count()))),
                     {.health = static_cast<float>(rng.below(4)) / 3,
                      .load = static_cast<float>(rng.below(4)) / 4});
    }
    const std::vector<NodeDevices> gang = random_gang(fleet.topology(), rng);
    const Placement fast = placement_of(gang, fleet.view());
    const Placement slow = reference_placement(gang, fleet.view());
    EXPECT_EQ(fast.domain_ranks, slow.domain_ranks) << name << " round " << round;
    EXPECT_EQ(fast.tier, slow.tier) << name << " round " << round;
    EXPECT_EQ(fast.scale_out_quality, slow.scale_out_quality) << name << " round " << round;
  }
}

TEST(Placement, is_what_looking_every_device_up_gives) {
  for (const char* name : {"superpod-h100", "gb200-nvl72-8racks", "two-regions", "mi300x-512"}) {
    Result<Topology> topology = example(name);
    ASSERT_TRUE(topology) << topology.error().text();
    expect_like_reference(*std::move(topology), name);
  }
  for (const char* kind : {"fat-tree, unit_nodes: 4, leaf_oversubscription: 2", "dragonfly",
                           "dragonfly+", "rail-only-fat-tree, unit_nodes: 16"}) {
    Result<Topology> topology = network_of_kind(kind);
    ASSERT_TRUE(topology) << topology.error().text();
    expect_like_reference(*std::move(topology), kind);
  }
}

TEST(Placement, nothing_joins_nodes_of_different_sites) {
  const Result<FleetSpec> spec =
      load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/two-regions.yaml");
  ASSERT_TRUE(spec);
  const Fleet fleet(*build_topology(*spec, builtin_facts()));
  const std::uint32_t last = fleet.topology().node_count() - 1;
  EXPECT_EQ(placement_of(ranks_on({0, last}, 1), fleet.view()).tier, NetworkTier::kNone);
}

}  // namespace
}  // namespace orrery

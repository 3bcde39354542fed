#include "planner/fleet_machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace orrery {
namespace {

/// Nodes of one type at one site, and the network between them.
struct NodePool {
  const NodeGroup* group = nullptr;
  const SiteFacts* site = nullptr;
  const FabricInstance* fabric = nullptr;
  std::uint64_t nodes = 0;
  std::uint64_t owned_nodes = 0;
  std::uint64_t unit_nodes = 0;  ///< under one leaf of the fabric
  std::uint64_t pod_nodes = 0;   ///< under one set of spines
};

/// Nodes of the fabric within `tier` of its node 0.
std::uint64_t near_first(const Fabric& fabric, NetworkTier tier) {
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < fabric.node_count(); ++i) {
    if (fabric.tier_between(0, i) <= tier) ++count;
  }
  return count;
}

/// Powers of two nodes, powers of two whole scale-up domains, and all.
std::vector<std::uint64_t> sizes_of(const NodePool& pool) {
  std::vector<std::uint64_t> sizes = {pool.nodes};
  for (const std::uint64_t first : {std::uint64_t{1}, std::uint64_t{pool.group->scale_up_nodes}}) {
    for (std::uint64_t n = first; n < pool.nodes; n *= 2) sizes.push_back(n);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<NodePool> pools_of(const Topology& topology) {
  // By site, node type and scale-up domain, in the order of the fleet.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, NodePool> pools;
  for (std::uint32_t i = 0; i < topology.node_count(); ++i) {
    const NodeId node(i);
    const NodeGroup& group = topology.group(node);
    if (group.devices == 0) continue;
    const DomainId site = topology.ancestor(topology.place(node).rack, Level::kSite);
    NodePool& pool = pools[{site.value(), group.node_type.value(), group.scale_up_devices}];
    pool.group = &group;
    ++pool.nodes;
    if (group.ownership == NodeOwnership::kOwned) ++pool.owned_nodes;
    if (pool.site != nullptr) continue;
    for (const SiteFacts& facts : topology.sites()) {
      if (facts.domain == site) pool.site = &facts;
    }
    for (const FabricInstance& fabric : topology.fabrics()) {
      if (fabric.site != site || pool.fabric != nullptr) continue;
      if (std::find(fabric.nodes.begin(), fabric.nodes.end(), node) != fabric.nodes.end()) {
        pool.fabric = &fabric;
      }
    }
  }
  std::vector<NodePool> list;
  for (auto& [key, pool] : pools) {
    if (pool.fabric != nullptr) {
      pool.unit_nodes = near_first(pool.fabric->graph, NetworkTier::kLeaf);
      pool.pod_nodes = near_first(pool.fabric->graph, NetworkTier::kSpine);
    }
    list.push_back(pool);
  }
  return list;
}

std::string extent(const NodePool& pool, std::uint64_t nodes) {
  if (nodes <= pool.group->scale_up_nodes) return nodes == 1 ? "one node" : "one scale-up domain";
  if (pool.fabric == nullptr) return "no fabric";
  if (nodes <= pool.unit_nodes) return "under one leaf";
  return nodes <= pool.pod_nodes ? "one pod of the fabric" : "across pods";
}

EconomicsOptions site_economics(const NodePool& pool, const EconomicsOptions& stated) {
  EconomicsOptions options = stated;
  const SiteFacts& site = *pool.site;
  if (!options.site.region) options.site.region = site.spec.region;
  if (!options.site.pue && !options.site.cooling) options.site.pue = site.pue;
  if (!options.site.carbon) options.site.carbon = site.carbon;
  if (!options.site.electricity) options.site.electricity = site.electricity;
  options.price_factor *= site.spec.price_factor.value_or(1);
  if (!options.basis && 2 * pool.owned_nodes > pool.nodes) options.basis = PriceBasis::kOwned;
  if (!options.storage && !site.spec.storage.empty()) {
    options.storage = site.spec.storage.front().system;
    options.storage_units = site.spec.storage.front().units;
  }
  return options;
}

/// The nodes of a pool, or only some accelerators of each.
struct PoolPart {
  std::uint64_t nodes = 1;
  std::uint32_t devices = 1;  ///< of each node
};

MachineRequest request_of(const Topology& topology, const NodePool& pool, const PoolPart& part) {
  const NodeGroup& group = *pool.group;
  const NodeType& node = topology.node_type(group);
  const std::uint64_t accelerators = part.nodes * part.devices;
  const bool several_nodes = group.scale_up_devices > group.devices || group.torus;
  MachineRequest request{.accelerator = &topology.accelerator(group.type),
                         .accelerators = accelerators,
                         .node_accelerators = part.devices,
                         .scale_up_domain = several_nodes
                                                ? group.scale_up_devices
                                                : std::min(group.scale_up_devices, part.devices)};
  if (node.compute_bandwidth > BytesPerSecond(0)) {
    request.node_bandwidth = node.compute_bandwidth * part.devices / group.devices;
  }
  if (pool.fabric != nullptr) request.fabric = pool.fabric->type;
  if (group.torus) {
    request.slice_accelerators = std::min<std::uint64_t>(accelerators, group.scale_up_devices);
  }
  request.scale_out = pool.fabric != nullptr;
  return request;
}

Result<MachineChoice> machine_of_pool(const Topology& topology, const NodePool& pool,
                                      const PoolPart& part, const EconomicsOptions& economics) {
  const NodeType& node = topology.node_type(*pool.group);
  const MachineRequest request = request_of(topology, pool, part);
  Result<Machine> machine = machine_of(topology.catalog(), request);
  if (!machine) return forward_error(machine);
  machine->node = &node;
  machine->host_memory = host_memory_of_rank(*machine);
  if (pool.fabric != nullptr) {
    const std::size_t tiers = machine->tiers.size();
    const bool used = tiers < 2 || machine->tiers[tiers - 2].size < machine->ranks;
    machine->tiers.back().routing = pool.fabric->routing;
    machine->tiers.back().in_network_reduction = used && pool.fabric->in_network_reduction;
    const Fabric& graph = pool.fabric->graph;
    const std::uint64_t each = part.devices;
    oversubscribe(*machine, pool.unit_nodes * each, graph.oversubscription(0));
    oversubscribe(
        *machine, pool.pod_nodes * each,
        std::max(1.0, graph.oversubscription(0)) * std::max(1.0, graph.oversubscription(1)));
  }
  const std::string site = topology.short_name(pool.site->domain);
  return MachineChoice{.label = fmt::format("{}:{} ({} x {} at {}, {})", request.accelerator->id,
                                            request.accelerators, part.nodes, node.id, site,
                                            extent(pool, part.nodes)),
                       .machine = *std::move(machine),
                       .request = {},
                       .economics = site_economics(pool, economics)};
}

}  // namespace

void oversubscribe(Machine& machine, std::uint64_t unit, double oversubscription) {
  if (oversubscription <= 1 || machine.tiers.empty() || unit >= machine.ranks) return;
  Tier& last = machine.tiers.back();
  const std::uint64_t below =
      machine.tiers.size() > 1 ? machine.tiers[machine.tiers.size() - 2].size : 1;
  const Tier inside = last;
  last.quality = 1 / oversubscription;
  if (unit <= below || machine.tiers.size() >= kTiersMax) return;
  machine.tiers.insert(machine.tiers.end() - 1, inside);
  machine.tiers[machine.tiers.size() - 2].size = unit;
}

std::vector<FleetPool> fleet_pools(const Topology& topology, const EconomicsOptions& economics) {
  std::vector<FleetPool> all;
  for (const NodePool& pool : pools_of(topology)) {
    const NodeGroup& group = *pool.group;
    const NodeType& node = topology.node_type(group);
    const Accelerator& accelerator = topology.accelerator(group.type);
    const std::uint64_t accelerators = pool.nodes * group.devices;
    std::optional<Machine> joined;
    if (pool.fabric != nullptr) {
      Result<MachineChoice> whole =
          machine_of_pool(topology, pool, {pool.nodes, group.devices}, economics);
      if (whole) joined = std::move(whole->machine);
    }
    all.push_back(
        {.label = fmt::format("{}:{} ({} x {} at {})", accelerator.id, accelerators, pool.nodes,
                              node.id, topology.short_name(pool.site->domain)),
         .type = group.type,
         .site = pool.site->domain,
         .accelerator = &accelerator,
         .node = &node,
         .accelerators = accelerators,
         .owned = pool.owned_nodes * group.devices,
         .domain = std::max<std::uint32_t>(group.scale_up_devices, group.devices),
         .joined = std::move(joined),
         .economics = site_economics(pool, economics)});
  }
  return all;
}

Result<MachineChoice> machine_with(const Topology& topology, const FleetPiece& piece,
                                   const EconomicsOptions& economics) {
  std::uint64_t most = 0;
  const std::vector<NodePool> pools = pools_of(topology);
  const NodePool* largest = nullptr;
  for (const NodePool& pool : pools) {
    const std::uint64_t here = pool.nodes * pool.group->devices;
    if (pool.group->type != piece.type || here <= most) continue;
    most = here;
    largest = &pool;
  }
  const std::string& id = topology.accelerator(piece.type).id;
  if (piece.accelerators == 0 || piece.accelerators > most) {
    return infeasible(fmt::format("{}:{}: the most in like nodes of one site are {}", id,
                                  piece.accelerators, most));
  }
  std::uint64_t devices = std::min<std::uint64_t>(largest->group->devices, piece.accelerators);
  while (piece.accelerators % devices != 0) --devices;
  const std::uint64_t nodes = piece.accelerators / devices;
  if (nodes > largest->nodes) {
    return infeasible(fmt::format("{}:{}: in equal parts of {} they need {} nodes, {} are there",
                                  id, piece.accelerators, devices, nodes, largest->nodes));
  }
  if (nodes > largest->group->scale_up_nodes && largest->fabric == nullptr) {
    return infeasible(
        fmt::format("{}:{}: no network joins {} nodes", id, piece.accelerators, nodes));
  }
  return machine_of_pool(topology, *largest, {nodes, static_cast<std::uint32_t>(devices)},
                         economics);
}

FleetMachines machines_of(const Topology& topology, const EconomicsOptions& economics) {
  FleetMachines machines;
  for (const NodePool& pool : pools_of(topology)) {
    for (const std::uint64_t nodes : sizes_of(pool)) {
      if (nodes > pool.group->scale_up_nodes && pool.fabric == nullptr) continue;
      Result<MachineChoice> choice =
          machine_of_pool(topology, pool, {nodes, pool.group->devices}, economics);
      if (choice) {
        machines.choices.push_back(*std::move(choice));
        continue;
      }
      const std::string& why = choice.error().message;
      auto& skipped = machines.skipped;
      if (std::find(skipped.begin(), skipped.end(), why) == skipped.end()) skipped.push_back(why);
    }
  }
  return machines;
}

}  // namespace orrery

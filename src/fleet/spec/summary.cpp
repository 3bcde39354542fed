#include "fleet/spec/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "fleet/network/scale_up_domain.hpp"

namespace orrery {
namespace {

void add_once(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

/// Nodes of one group at one site, which share price, power and type.
struct Batch {
  const NodeGroup* group;
  const SiteFacts* site;
  double nodes;
};

std::vector<Batch> batches_of(const Topology& topology) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
  for (std::uint32_t s = 0; s < topology.sites().size(); ++s) {
    const Domain& site = topology.domain(topology.sites()[s].domain);
    for (std::uint32_t i = 0; i < site.nodes; ++i) {
      ++counts[{s, topology.place(NodeId(site.first_node.value() + i)).group}];
    }
  }
  std::vector<Batch> batches;
  batches.reserve(counts.size());
  for (const auto& [key, nodes] : counts) {
    batches.push_back(
        {&topology.groups()[key.second], &topology.sites()[key.first], static_cast<double>(nodes)});
  }
  return batches;
}

std::string scale_up_text(const Topology& topology, const NodeGroup& group) {
  const Accelerator& type = topology.accelerator(group.type);
  if (group.scale_up_devices <= 1) return "none";
  std::string text;
  if (group.torus) {
    for (const int side : group.torus->shape) {
      text += fmt::format("{}{}", text.empty() ? "torus of " : "x", side);
    }
    if (group.torus->twisted) text += ", twisted";
  } else {
    text = fmt::format("{} in a {} ({})", group.scale_up_devices,
                       group.scale_up_nodes > 1 ? "rack" : "node", type.scale_up.topology);
  }
  if (!group.scale_up_shape) return text;
  const auto bisection = scale_up_bisection(topology.catalog(), type, *group.scale_up_shape);
  return bisection ? fmt::format("{}, bisection {}", text, print(*bisection)) : text;
}

void add_type(const Topology& topology, const Batch& batch, FleetSummary& summary) {
  const Accelerator& type = topology.accelerator(batch.group->type);
  const std::string scale_up = scale_up_text(topology, *batch.group);
  const auto devices = static_cast<std::uint32_t>(batch.nodes) * batch.group->devices;
  auto found = std::find_if(summary.types.begin(), summary.types.end(), [&](const TypeTotal& t) {
    return t.accelerator == type.id && t.scale_up == scale_up;
  });
  if (found == summary.types.end()) {
    summary.types.push_back({type.id, 0, 0, scale_up});
    found = std::prev(summary.types.end());
  }
  found->count += devices;
  found->nodes += static_cast<std::uint32_t>(batch.nodes);
  summary.memory += type.memory * devices;
  summary.memory_bandwidth += type.memory_bandwidth * devices;
  const auto& host = topology.node_type(*batch.group).host_memory;
  if (host) summary.host_memory += *host * batch.nodes;
}

void add_rates(const Topology& topology, const std::vector<Batch>& batches, FleetSummary& summary) {
  for (const auto& format : enum_words(NumberFormat{})) {
    FlopsPerSecond sum;
    for (const Batch& batch : batches) {
      const auto rate = topology.accelerator(batch.group->type).rate(format.value);
      if (rate) sum += *rate * (batch.nodes * batch.group->devices);
    }
    if (sum > FlopsPerSecond(0)) summary.dense_flops.emplace_back(format.word, sum);
  }
}

// Returns the price of a node: its own, or its share of the price of a system made of it.
std::optional<Dollars> server_price(const Catalog& catalog, const NodeType& node) {
  if (const ServerCapex* own = catalog.server_capex(node.id)) return own->typical;
  for (const SystemType& system : catalog.all<SystemType>()) {
    const ServerCapex* rack = catalog.server_capex(system.id);
    if (system.node == node.id && rack != nullptr && system.rack_trays) {
      return rack->typical / *system.rack_trays;
    }
  }
  return std::nullopt;
}

void add_money(const Topology& topology, const Batch& batch, FleetSummary& summary) {
  const Catalog& catalog = topology.catalog();
  const Accelerator& type = topology.accelerator(batch.group->type);
  const NodeType& node = topology.node_type(*batch.group);
  const AcceleratorPrice* price = catalog.price(type);
  MoneyTotal& money = summary.money;
  if (const std::optional<Dollars> server = server_price(catalog, node)) {
    money.capex += *server * batch.nodes;
  } else if (price != nullptr && price->unit_capex) {
    money.capex += *price->unit_capex * (batch.nodes * batch.group->devices);
    add_once(money.capex_partial, node.id);
  } else {
    add_once(money.capex_missing, node.id);
  }
  if (price != nullptr && price->on_demand) {
    money.rent.quantity += price->on_demand->quantity * (batch.nodes * batch.group->devices *
                                                         batch.site->spec.price_factor.value_or(1));
  } else {
    add_once(money.rent_missing, type.id);
  }
}

void add_power(const Topology& topology, const std::vector<Batch>& batches, FleetSummary& summary) {
  PowerTotal& power = summary.power;
  summary.money.energy = DollarsPerHour{};
  for (const Batch& batch : batches) {
    const Watts typical = *batch.group->typical_power * batch.nodes;
    const Watts max = *batch.group->max_power * batch.nodes;
    power.it_max += max;
    power.it_typical += typical;
    power.facility_max += max * batch.site->pue;
    power.facility_typical += typical * batch.site->pue;
    if (batch.group->power_assumed) add_once(power.assumed, topology.node_type(*batch.group).id);
    if (!batch.site->electricity) summary.money.energy.reset();
    if (summary.money.energy) {
      summary.money.energy->quantity += typical * batch.site->pue * *batch.site->electricity;
    }
  }
  const auto domains = topology.power_domains();
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (domains[i].limit && domains[i].max_power > *domains[i].limit) {
      power.oversubscribed.push_back(topology.power_name(PowerDomainId::at(i)));
    }
    if (domains[i].limit && domains[i].typical_power > *domains[i].limit) {
      power.oversubscribed_in_training.push_back(
          {topology.power_name(PowerDomainId::at(i)), domains[i].typical_power, *domains[i].limit});
    }
  }
  std::ranges::stable_sort(
      power.oversubscribed_in_training, std::greater<>(),
      [](const OversubscribedPower& domain) { return domain.load / domain.limit; });
}

FabricTotal fabric_total(const Topology& topology, const FabricInstance& fabric) {
  const Fabric& graph = fabric.graph;
  FabricTotal total;
  total.name = fabric.name;
  total.site = topology.path(fabric.site);
  total.type = fabric.type->id;
  total.topology = word_of(graph.kind());
  total.nodes = graph.node_count();
  total.leaves = graph.switches(0);
  total.spines = graph.switches(1);
  total.cores = graph.switches(2);
  total.node_cables = std::uint64_t{graph.node_count()} * graph.ports_per_node();
  total.leaf_spine_cables = graph.cables(0);
  total.spine_core_cables = graph.cables(1);
  total.bisection = graph.bisection();
  total.oversubscription = {graph.oversubscription(0), graph.oversubscription(1)};
  if (fabric.type->switch_power) {
    total.switch_power = *fabric.type->switch_power * static_cast<double>(graph.switches().size());
  }
  return total;
}

void add_storage(const Topology& topology, FleetSummary& summary) {
  for (const SiteFacts& site : topology.sites()) {
    for (const StorageSpec& spec : site.spec.storage) {
      const StorageSystem& system = *topology.catalog().find<StorageSystem>(spec.system);
      StorageTotal total{spec.name, site.spec.name, system.id, spec.units, {}, {}, {}};
      total.read = system.read * spec.units;
      if (system.write) total.write = *system.write * spec.units;
      if (system.usable) total.usable = *system.usable * spec.units;
      summary.storage.push_back(std::move(total));
    }
  }
}

// Adds the power of switches and storage.
void add_other_power(const Topology& topology, FleetSummary& summary) {
  for (const SiteFacts& site : topology.sites()) {
    const Watts watts = shared_power(topology, site);
    summary.power.it_max += watts;
    summary.power.it_typical += watts;
    summary.power.facility_max += watts * site.pue;
    summary.power.facility_typical += watts * site.pue;
    if (summary.money.energy && site.electricity) {
      summary.money.energy->quantity += watts * site.pue * *site.electricity;
    }
  }
}

}  // namespace

FleetSummary summarize(const Topology& topology) {
  FleetSummary summary;
  summary.name = topology.name();
  summary.nodes = topology.node_count();
  summary.accelerators = topology.device_count();
  for (const Domain& domain : topology.domains()) {
    summary.sites += domain.level == Level::kSite ? 1 : 0;
    summary.halls += domain.level == Level::kHall ? 1 : 0;
    summary.pods += domain.level == Level::kPod ? 1 : 0;
    summary.racks += domain.level == Level::kRack ? 1 : 0;
  }
  const std::vector<Batch> batches = batches_of(topology);
  for (const Batch& batch : batches) {
    add_type(topology, batch, summary);
    add_money(topology, batch, summary);
  }
  add_rates(topology, batches, summary);
  add_power(topology, batches, summary);
  for (const FabricInstance& fabric : topology.fabrics()) {
    summary.fabrics.push_back(fabric_total(topology, fabric));
  }
  add_storage(topology, summary);
  add_other_power(topology, summary);
  return summary;
}

}  // namespace orrery

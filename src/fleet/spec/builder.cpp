#include "fleet/spec/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/text/count_text.hpp"
#include "base/text/quantity_text.hpp"
#include "fleet/import/host_list.hpp"
#include "fleet/network/scale_up_domain.hpp"
#include "fleet/state.hpp"

namespace orrery {
namespace {

// Pods and racks of a group are numbered from 1; a group of one has no number.
std::uint32_t ordinal_of(int index, int count) {
  return count == 1 ? 0 : static_cast<std::uint32_t>(index) + 1;
}

bool has_nodes(const RackSpec& rack) {
  return rack.count > 0 && std::ranges::any_of(rack.nodes, [](const NodeGroupSpec& group) {
           return group.count > 0;
         });
}

bool has_nodes(const PodSpec& pod) {
  return pod.count > 0 &&
         std::ranges::any_of(pod.racks, [](const RackSpec& rack) { return has_nodes(rack); });
}

// Returns whole units of an amount; 0 if it is below one unit or not published.
std::uint32_t units_of(const std::optional<Bytes>& amount, Bytes unit) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  return amount ? static_cast<std::uint32_t>(std::clamp(*amount / unit, 0.0, kMost)) : 0;
}

HostResources host_of(const NodeType& type) {
  constexpr Bytes kMebibyte(1 << 20);
  constexpr Bytes kGibibyte(1 << 30);
  return {.cpu = static_cast<std::uint32_t>(type.cpu_cores.value_or(0)) * 1000,
          .memory = units_of(type.host_memory, kMebibyte),
          .cxl = units_of(type.cxl_memory, kGibibyte),
          .disk = units_of(type.local_nvme, kGibibyte)};
}

}  // namespace

Result<Topology> build_topology(const FleetSpec& spec, const Catalog& catalog) {
  return TopologyBuilder(spec, catalog).build();
}

TopologyBuilder::TopologyBuilder(const FleetSpec& spec, const Catalog& catalog)
    : spec_(spec), catalog_(catalog) {
  topology_.name_ = spec.name;
  topology_.description_ = spec.description;
  topology_.catalog_ = &catalog;
  topology_.wan_ = spec.wan;
}

Result<Topology> TopologyBuilder::build() {
  if (Status sized = check_size(); !sized) return forward_error(sized);
  open_domain(Level::kFleet, spec_.name, 0);
  for (const SiteSpec& site : spec_.sites) {
    if (Status added = add_site(site); !added) return forward_error(added);
  }
  close_domain(Level::kFleet);
  number_domains();
  place_scale_up_domains();
  count_types();
  if (Status built = build_power(); !built) return forward_error(built);
  if (Status built = build_fabrics(); !built) return forward_error(built);
  add_shared_power();
  if (Status checked = check_power_limits(); !checked) return forward_error(checked);
  return std::move(topology_);
}

// Counts multiply, so a few lines can ask for more nodes than memory holds.
Status TopologyBuilder::check_size() const {
  constexpr double kNodesMax = 1 << 20;
  constexpr double kNodesPerRackMax = 4096;
  double total = 0;
  for (const SiteSpec& site : spec_.sites) {
    for (const HallSpec& hall : site.halls) {
      for (const PodSpec& pod : hall.pods) {
        for (const RackSpec& rack : pod.racks) {
          double nodes = 0;
          for (const NodeGroupSpec& group : rack.nodes) nodes += group.count;
          if (nodes > kNodesPerRackMax) {
            return input_error(rack.where, fmt::format("{} nodes in one rack, at most {}",
                                                       print_count(nodes), kNodesPerRackMax));
          }
          total += nodes * rack.count * pod.count;
          if (total > kNodesMax) {
            return input_error(rack.where, fmt::format("more than {} nodes in all, which is the "
                                                       "most a fleet may have",
                                                       print_count(kNodesMax)));
          }
        }
      }
    }
  }
  if (total == 0) return input_error(spec_.where, "the fleet has no nodes");
  return {};
}

Status TopologyBuilder::add_site(const SiteSpec& site) {
  open_domain(Level::kSite, site.name, 0);
  site_ = &site;
  for (const HallSpec& hall : site.halls) {
    if (Status added = add_hall(hall); !added) return added;
  }
  close_domain(Level::kSite);
  return {};
}

// A place without nodes is no domain, but its types of node belong to the fleet.
Status TopologyBuilder::add_hall(const HallSpec& hall) {
  const bool is_used =
      std::ranges::any_of(hall.pods, [](const PodSpec& pod) { return has_nodes(pod); });
  if (is_used) open_domain(Level::kHall, hall.name, 0);
  hall_ = &hall;
  for (const PodSpec& pod : hall.pods) {
    std::vector<std::uint32_t> groups;
    for (const RackSpec& rack : pod.racks) {
      for (const NodeGroupSpec& group : rack.nodes) {
        Result<std::uint32_t> added = add_group(group, pod, rack);
        if (!added) return forward_error(added);
        groups.push_back(*added);
      }
    }
    for (int i = 0; has_nodes(pod) && i < pod.count; ++i) {
      open_domain(Level::kPod, pod.name, ordinal_of(i, pod.count));
      if (Status added = add_pod(pod, groups); !added) return added;
      close_domain(Level::kPod);
    }
  }
  if (is_used) close_domain(Level::kHall);
  return {};
}

Status TopologyBuilder::add_pod(const PodSpec& pod, std::span<const std::uint32_t> groups) {
  std::size_t first = 0;
  for (const RackSpec& rack : pod.racks) {
    const auto own = groups.subspan(first, rack.nodes.size());
    first += rack.nodes.size();
    for (int i = 0; has_nodes(rack) && i < rack.count; ++i) {
      open_domain(Level::kRack, rack.name, ordinal_of(i, rack.count));
      if (Status added = add_rack(rack, own); !added) return added;
      close_domain(Level::kRack);
      if (Status planned = plan_rack(rack, own); !planned) return planned;
    }
  }
  return {};
}

Status TopologyBuilder::add_rack(const RackSpec& rack, std::span<const std::uint32_t> groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (int i = 0; i < rack.nodes[g].count; ++i) add_node(groups[g]);
  }
  return {};
}

void TopologyBuilder::add_node(std::uint32_t group) {
  const NodeGroup& made = topology_.groups_[group];
  NodePlace place;
  place.rack = DomainId(static_cast<std::uint32_t>(level(Level::kRack).size()) - 1);
  place.first_device = DeviceId(topology_.device_count_);
  place.group = group;
  place.occurrence = group_sizes_[group]++;
  topology_.places_.push_back(place);
  topology_.device_count_ += made.devices;
}

Result<std::uint32_t> TopologyBuilder::add_group(const NodeGroupSpec& spec, const PodSpec& pod,
                                                 const RackSpec& rack) {
  Result<const NodeType*> type = catalog_.require<NodeType>(spec.type, spec.where);
  if (!type) return forward_error(type);
  NodeGroup group;
  group.node_type = NodeTypeId::at(catalog_.index_of(**type));
  group.type = type_id(**type);
  group.devices = static_cast<std::uint16_t>((*type)->accelerators_per_node);
  group.host = host_of(**type);
  group.ownership = spec.ownership.value_or(site_->ownership.value_or(NodeOwnership::kRented));
  Status status = set_power(spec, **type, group);
  const auto expected = static_cast<std::uint64_t>(spec.count) *
                        static_cast<std::uint64_t>(rack.count) *
                        static_cast<std::uint64_t>(pod.count);
  if (status && expected > 0) status = set_scale_up(rack, pod, **type, group);
  if (status) status = set_names(spec, expected, group);
  if (!status) return forward_error(status);
  topology_.groups_.push_back(std::move(group));
  group_sizes_.push_back(0);
  pod_torus_.push_back(pod.torus.has_value());
  return static_cast<std::uint32_t>(topology_.groups_.size()) - 1;
}

Status TopologyBuilder::set_power(const NodeGroupSpec& spec, const NodeType& type,
                                  NodeGroup& group) const {
  // Mean power of compute-heavy training over the rating: 0.76 (arXiv 2506.14551, 8 x H100 nodes).
  constexpr double kTrainingFraction = 0.76;
  group.max_power = spec.max_power ? spec.max_power : type.max_power;
  group.typical_power = spec.typical_power ? spec.typical_power : type.typical_training_power;
  if (!group.max_power && type.assumed_power) {
    group.max_power = type.assumed_power->high;
    group.power_assumed = true;
  }
  if (!group.max_power) {
    return input_error(spec.where, fmt::format("the power of \"{}\" is not published; give "
                                               "max_power (of one node) here",
                                               type.id));
  }
  if (!group.typical_power) {
    group.typical_power = *group.max_power * kTrainingFraction;
    group.power_assumed = true;
  }
  if (*group.typical_power > *group.max_power) {
    return input_error(spec.where,
                       fmt::format("typical_power {} is above max_power {}",
                                   print(*group.typical_power), print(*group.max_power)));
  }
  return {};
}

namespace {

struct ScaleUpUnit {
  std::string_view name;
  std::uint64_t devices;
  const std::optional<TorusSpec>* torus;
};

Status check_torus(const TorusSpec& torus, std::uint64_t devices, std::string_view unit) {
  std::uint64_t product = 1;
  for (const int side : torus.shape) {
    if (side < 1 || side > 4096) return input_error(torus.where, "torus sides are 1 to 4096");
    product *= static_cast<std::uint64_t>(side);
  }
  if (torus.shape.size() < 2 || torus.shape.size() > 3) {
    return input_error(torus.where, "a torus has two or three sides");
  }
  if (!torus.cube.empty()) {
    bool fits = torus.cube.size() == torus.shape.size();
    for (std::size_t i = 0; fits && i < torus.cube.size(); ++i) {
      fits = torus.cube[i] >= 1 && torus.shape[i] % torus.cube[i] == 0;
    }
    if (!fits) return input_error(torus.where, "the cube's sides must divide the torus's");
  }
  if (product == devices) return {};
  return input_error(torus.where, fmt::format("the torus has {} accelerators, the {} has {}",
                                              product, unit, devices));
}

std::uint64_t devices_of(const RackSpec& rack, const Catalog& catalog) {
  std::uint64_t devices = 0;
  for (const NodeGroupSpec& group : rack.nodes) {
    const NodeType* type = catalog.find<NodeType>(group.type);
    if (type == nullptr) continue;
    devices += static_cast<std::uint64_t>(type->accelerators_per_node) *
               static_cast<std::uint64_t>(group.count);
  }
  return devices;
}

Status check_unit(const ScaleUpUnit& unit, const Accelerator& accelerator,
                  const SourcePosition& where) {
  const auto domain_max = static_cast<std::uint64_t>(accelerator.scale_up.domain_max.value_or(1));
  if (unit.devices > domain_max) {
    return input_error(where, fmt::format("a scale-up domain of {} accelerators (the {}), but {} "
                                          "joins at most {}",
                                          unit.devices, unit.name, accelerator.id, domain_max));
  }
  if (*unit.torus) return check_torus(**unit.torus, unit.devices, unit.name);
  if (!accelerator.scale_up.topology.starts_with("torus")) return {};
  return input_error(where, fmt::format("{} is joined as a torus; give torus: {{shape: [..]}} on "
                                        "the pod or the rack",
                                        accelerator.id));
}

}  // namespace

// A domain larger than a node is the rack, or the pod if the pod has the torus.
Status TopologyBuilder::set_scale_up(const RackSpec& rack, const PodSpec& pod, const NodeType& type,
                                     NodeGroup& group) const {
  const Accelerator& accelerator = *catalog_.find<Accelerator>(type.accelerator);
  group.scale_up_devices = static_cast<std::uint32_t>(
      std::min(type.scale_up_domain_accelerators, type.accelerators_per_node));
  const bool spans =
      pod.torus || rack.torus || type.scale_up_domain_accelerators > type.accelerators_per_node;
  if (spans) {
    ScaleUpUnit unit{"rack", devices_of(rack, catalog_), &rack.torus};
    if (pod.torus) {
      unit = {"pod", 0, &pod.torus};
      for (const RackSpec& each : pod.racks) {
        unit.devices += devices_of(each, catalog_) * static_cast<std::uint64_t>(each.count);
      }
    }
    if (Status checked = check_unit(unit, accelerator, rack.where); !checked) return checked;
    group.torus = *unit.torus;
    group.scale_up_devices = static_cast<std::uint32_t>(unit.devices);
    group.scale_up_nodes = 0;  // all nodes of the unit: filled by place_scale_up_domains
  }
  Result<std::optional<ScaleUpShape>> shape =
      scale_up_shape(catalog_, accelerator, static_cast<int>(group.scale_up_devices), group.torus);
  if (!shape) return forward_error(shape);
  group.scale_up_shape = *std::move(shape);
  return {};
}

Status TopologyBuilder::set_names(const NodeGroupSpec& spec, std::uint64_t expected,
                                  NodeGroup& group) {
  if (!spec.names) return {};
  Result<std::vector<std::string>> names = expand_host_list(*spec.names);
  if (!names) return input_error(spec.where, names.error().message);
  if (names->size() != expected) {
    return input_error(spec.where,
                       fmt::format("names has {} for {}", counted(names->size(), "name"),
                                   counted(expected, "node")));
  }
  for (const std::string& name : *names) {
    if (node_names_.insert(name).second) continue;
    return input_error(spec.where, fmt::format("a second node named \"{}\"", name));
  }
  group.names = *std::move(names);
  return {};
}

std::uint32_t TopologyBuilder::name_id(const std::string& name) {
  const auto found = std::find(topology_.names_.begin(), topology_.names_.end(), name);
  const auto at = static_cast<std::uint32_t>(found - topology_.names_.begin());
  if (found == topology_.names_.end()) topology_.names_.push_back(name);
  return at;
}

FleetTypeId TopologyBuilder::type_id(const NodeType& type) {
  const auto index =
      AcceleratorTypeId::at(catalog_.index_of(*catalog_.find<Accelerator>(type.accelerator)));
  const auto found = std::find(topology_.types_.begin(), topology_.types_.end(), index);
  const auto at = static_cast<std::uint32_t>(found - topology_.types_.begin());
  if (found == topology_.types_.end()) topology_.types_.push_back(index);
  return FleetTypeId(at);
}

void TopologyBuilder::open_domain(Level at, const std::string& name, std::uint32_t ordinal) {
  Domain domain;
  domain.level = at;
  domain.name = name_id(name);
  domain.ordinal = ordinal;
  domain.first_node = NodeId(topology_.node_count());
  if (at != Level::kFleet) {
    std::vector<Domain>& above = levels_[static_cast<std::size_t>(at) - 1];
    domain.parent = DomainId::at(above.size() - 1);
    if (above.back().children++ == 0) above.back().first_child = DomainId::at(level(at).size());
  }
  level(at).push_back(domain);
}

void TopologyBuilder::close_domain(Level at) {
  Domain& domain = level(at).back();
  domain.nodes = topology_.node_count() - domain.first_node.value();
}

// Ids are numbered level by level, so every position in a level is shifted by the size of the
// levels above.
void TopologyBuilder::number_domains() {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < kLevels; ++i) {
    first_of_level_[i] = first;
    first += static_cast<std::uint32_t>(levels_[i].size());
  }
  const auto shifted = [&](DomainId id, std::size_t at) {
    return DomainId(id.value() + first_of_level_[at]);
  };
  for (std::size_t i = 0; i < kLevels; ++i) {
    for (Domain domain : levels_[i]) {
      if (i > 0) domain.parent = shifted(domain.parent, i - 1);
      if (domain.children > 0) domain.first_child = shifted(domain.first_child, i + 1);
      topology_.domains_.push_back(domain);
    }
  }
  constexpr auto kRacks = static_cast<std::size_t>(Level::kRack);
  topology_.first_rack_ = DomainId(first_of_level_[kRacks]);
  for (NodePlace& place : topology_.places_) place.rack = shifted(place.rack, kRacks);
}

void TopologyBuilder::place_scale_up_domains() {
  for (std::uint32_t i = 0; i < topology_.node_count(); ++i) {
    NodePlace& place = topology_.places_[i];
    NodeGroup& group = topology_.groups_[place.group];
    place.scale_up_first = NodeId(i);
    const bool in_node = group.scale_up_devices <= group.devices && !group.torus;
    if (in_node) continue;
    const Domain& rack = topology_.domain(place.rack);
    const Domain& pod = topology_.domain(rack.parent);
    const bool whole_pod = pod_has_torus(place.group);
    const Domain& unit = whole_pod ? pod : rack;
    place.scale_up_first = unit.first_node;
    group.scale_up_nodes = unit.nodes;
  }
}

// Computes which types each domain holds, how many devices of each, and the length of a row of
// counts.
void TopologyBuilder::count_types() {
  const std::size_t types = topology_.types_.size();
  topology_.node_devices_max_.assign(types, 0);
  for (const NodeGroup& group : topology_.groups_) {
    std::uint32_t& most = topology_.node_devices_max_[group.type.value()];
    most = std::max<std::uint32_t>(most, group.devices);
    const std::uint32_t cells = CountRow::size(most);
    topology_.count_row_bits_ =
        std::max(topology_.count_row_bits_, static_cast<std::uint32_t>(std::bit_width(cells - 1)));
  }
  std::vector<std::uint32_t> devices(types);
  for (Domain& domain : topology_.domains_) {
    std::fill(devices.begin(), devices.end(), 0);
    for (std::uint32_t i = 0; i < domain.nodes; ++i) {
      const NodeGroup& group = topology_.group(NodeId(domain.first_node.value() + i));
      devices[group.type.value()] += group.devices;
    }
    domain.first_type = static_cast<std::uint32_t>(topology_.domain_types_.size());
    for (std::size_t t = 0; t < types; ++t) {
      if (devices[t] == 0) continue;
      ++domain.types;
      topology_.domain_types_.push_back(FleetTypeId::at(t));
      topology_.domain_devices_.push_back(devices[t]);
    }
  }
}

}  // namespace orrery

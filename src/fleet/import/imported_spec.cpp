#include "fleet/import/imported_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/nearest_name.hpp"
#include "fleet/rack_cooling.hpp"

namespace orrery {
namespace {

using NodePositions = std::vector<std::uint32_t>;

/// Returns a valid name for a spec that is not in `taken`, and adds it there.
std::string free_name(std::string_view wanted, std::set<std::string>& taken) {
  constexpr std::size_t kLongest = 48;
  std::string name(wanted.substr(0, kLongest));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '-';
  }
  if (name.empty()) name = "unnamed";
  std::string free = name;
  for (int n = 2; !taken.insert(free).second; ++n) free = fmt::format("{}-{}", name, n);
  return free;
}

/// A host name, split at its last number.
struct NumberedName {
  std::string_view stem;
  std::string_view digits;

  explicit NumberedName(std::string_view name) : stem(name) {
    constexpr std::size_t kDigitsMax = 18;
    std::size_t count = 0;
    while (count < name.size() && count < kDigitsMax && name[name.size() - count - 1] >= '0' &&
           name[name.size() - count - 1] <= '9') {
      ++count;
    }
    stem = name.substr(0, name.size() - count);
    digits = name.substr(stem.size());
  }
  [[nodiscard]] std::uint64_t number() const {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }
};

// Returns the names of `nodes` as a host list that expands to them in this order.
std::string host_list_of(const ImportedCluster& cluster, std::span<const std::uint32_t> nodes) {
  const auto name_at = [&](std::size_t i) { return NumberedName(cluster.nodes[nodes[i]].name); };
  std::string list;
  for (std::size_t i = 0; i < nodes.size();) {
    const std::string_view stem = name_at(i).stem;
    std::vector<std::string> ranges;
    bool several = false;
    while (i < nodes.size() && name_at(i).stem == stem && !name_at(i).digits.empty()) {
      const std::string_view low = name_at(i).digits;
      std::uint64_t next = name_at(i).number() + 1;
      const std::size_t first = i++;
      for (; i < nodes.size() && name_at(i).stem == stem; ++i, ++next) {
        if (name_at(i).digits != fmt::format("{:0{}}", next, low.size())) break;
      }
      const std::string_view high = name_at(i - 1).digits;
      several = several || i - first > 1 || !ranges.empty();
      ranges.push_back(i - first > 1 ? fmt::format("{}-{}", low, high) : std::string(low));
    }
    if (!list.empty()) list += ',';
    list += stem;
    if (ranges.empty()) {
      ++i;
    } else {
      list += several ? fmt::format("[{}]", fmt::join(ranges, ",")) : ranges.front();
    }
  }
  return list;
}

constexpr int kRackNodesMax = 4096;

double gigabits_of(const NodeType& type) {
  return type.compute_nic_rate.quantity.value() * 8 / 1e9;
}

bool domain_spans_nodes(const NodeType& type) {
  return type.scale_up_domain_accelerators > type.accelerators_per_node;
}

/// Writes the spec of one cluster.
class ImportedSpecWriter {
 public:
  ImportedSpecWriter(const Catalog& catalog, const ImportedCluster& cluster)
      : catalog_(catalog), cluster_(cluster) {}

  FleetSpec write() {
    FleetSpec spec;
    std::set<std::string> fleet_names;
    spec.name =
        free_name(cluster_.name.empty() ? lower_case(cluster_.source) : cluster_.name, fleet_names);
    spec.where = {cluster_.file, 0, 0};
    SiteSpec site;
    site.where = spec.where;
    HallSpec hall;
    hall.where = spec.where;
    std::set<std::string> pod_names;
    for (const ImportedPod& pod : cluster_.pods) {
      PodSpec made;
      made.name = free_name(pod.name, pod_names);
      made.where = spec.where;
      std::set<std::string> rack_names;
      for (const ImportedLeaf& leaf : pod.leaves) add_leaf(leaf, made, rack_names);
      hall.pods.push_back(std::move(made));
    }
    site.halls.push_back(std::move(hall));
    describe_nodes();
    add_fabrics(site);
    spec.sites.push_back(std::move(site));
    spec.description = fmt::format("{}", fmt::join(notes_, " "));
    return spec;
  }

 private:
  struct TypeNodes {
    const NodeType* type;
    NodePositions nodes;
  };

  /// Nodes with equal NICs, which share a network.
  struct NicGroup {
    const NodeType* first = nullptr;
    std::vector<std::string> types;
    std::vector<int> of_leaf;  ///< nodes under each leaf that has any
    int nodes = 0;
  };

  void note(std::string text) { notes_.push_back(std::move(text)); }

  // A rack holds nodes of one type; a leaf with several types has racks of each.
  void add_leaf(const ImportedLeaf& leaf, PodSpec& pod, std::set<std::string>& names) {
    std::vector<TypeNodes> by_type;
    for (const std::uint32_t node : leaf.nodes) {
      const NodeType* type = cluster_.nodes[node].type;
      const auto known = std::find_if(by_type.begin(), by_type.end(),
                                      [&](const TypeNodes& each) { return each.type == type; });
      if (known != by_type.end()) {
        known->nodes.push_back(node);
      } else {
        by_type.push_back({type, {node}});
      }
    }
    for (const TypeNodes& each : by_type) {
      const std::string name =
          by_type.size() == 1 ? leaf.name : fmt::format("{}-{}", leaf.name, each.type->id);
      add_racks(each, name, pod, names);
    }
  }

  void add_racks(const TypeNodes& all, const std::string& name, PodSpec& pod,
                 std::set<std::string>& names) {
    const auto nodes = static_cast<int>(all.nodes.size());
    const int most = rack_nodes_max(catalog_, *all.type, kRackNodesMax);
    // Racks are filled evenly, but with whole scale-up domains if possible.
    const int racks = (nodes + most - 1) / most;
    const int each =
        domain_spans_nodes(*all.type) ? std::min(most, nodes) : (nodes + racks - 1) / racks;
    const int full = nodes / each;
    const std::span<const std::uint32_t> positions(all.nodes);
    const auto in_full = static_cast<std::size_t>(full) * static_cast<std::size_t>(each);
    pod.racks.push_back(rack_of(positions.first(in_full), each));
    pod.racks.back().name = free_name(name, names);
    if (nodes % each == 0) return;
    pod.racks.push_back(rack_of(positions.subspan(in_full), nodes % each));
    pod.racks.back().name = free_name(name + "-last", names);
  }

  // Makes racks of `each` of the nodes, which are equal.
  RackSpec rack_of(std::span<const std::uint32_t> nodes, int each) const {
    const ImportedNode& first = cluster_.nodes[nodes.front()];
    RackSpec rack;
    rack.count = static_cast<int>(nodes.size()) / each;
    rack.where = cluster_.lines[first.line];
    const CoolingClass* cooling =
        least_cooling(catalog_, *first.type, planned_power(*first.type) * each);
    if (cooling != nullptr) rack.cooling = cooling->id;
    NodeGroupSpec group;
    group.type = first.type->id;
    group.count = each;
    group.names = host_list_of(cluster_, nodes);
    group.where = rack.where;
    rack.nodes.push_back(std::move(group));
    return rack;
  }

  void describe_nodes() {
    note(fmt::format("Imported from {}; nodes: {}.", cluster_.source, cluster_.nodes.size()));
    note(
        fmt::format("Node types are those of the catalog with the accelerators {} names; "
                    "cooling is the least that holds each rack.",
                    cluster_.source));
    for (const std::string& choice : cluster_.choices) note(fmt::format("Chosen: {}.", choice));
    if (cluster_.cpu_nodes > 0) {
      note(fmt::format(
          "Nodes without GPUs, assumed to be {} whatever their CPUs and memory are: {}.",
          cluster_.cpu_type->id, cluster_.cpu_nodes));
    }
    if (cluster_.unlisted_nodes > 0) {
      note(fmt::format("Nodes under no switch: {}.", cluster_.unlisted_nodes));
    }
    const bool spans =
        std::any_of(cluster_.nodes.begin(), cluster_.nodes.end(),
                    [](const ImportedNode& n) { return domain_spans_nodes(*n.type); });
    if (spans) {
      note(
          "Racks whose accelerators can form one scale-up domain are assumed to be "
          "one.");
    }
    notes_.insert(notes_.end(), cluster_.notes.begin(), cluster_.notes.end());
  }

  // Nodes without GPUs have an assumed type, so their NICs are unknown.
  std::vector<NicGroup> nic_groups() const {
    std::vector<NicGroup> groups;
    for (const ImportedPod& pod : cluster_.pods) {
      for (const ImportedLeaf& leaf : pod.leaves) add_to_groups(leaf, groups);
    }
    return groups;
  }

  void add_to_groups(const ImportedLeaf& leaf, std::vector<NicGroup>& groups) const {
    std::vector<int> here(groups.size());
    for (const std::uint32_t node : leaf.nodes) {
      const NodeType* type = cluster_.nodes[node].type;
      if (type == cluster_.cpu_type || type->compute_nics < 1) continue;
      std::size_t at = 0;
      while (at < groups.size() && (groups[at].first->compute_nics != type->compute_nics ||
                                    groups[at].first->compute_nic_rate != type->compute_nic_rate)) {
        ++at;
      }
      if (at == groups.size()) {
        groups.push_back({type, {}, {}, 0});
        here.push_back(0);
      }
      std::vector<std::string>& types = groups[at].types;
      if (std::find(types.begin(), types.end(), type->id) == types.end()) {
        types.push_back(type->id);
      }
      ++groups[at].nodes;
      ++here[at];
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (here[i] > 0) groups[i].of_leaf.push_back(here[i]);
    }
  }

  void add_fabrics(SiteSpec& site) {
    const std::vector<NicGroup> groups = nic_groups();
    for (const NicGroup& group : groups) {
      const std::string nics =
          fmt::format("{} x {:g} Gb/s", group.first->compute_nics, gigabits_of(*group.first));
      const ScaleOutFabric* type = fabric_type(*group.first);
      std::optional<FabricSpec> fabric;
      if (type != nullptr) fabric = fabric_of(group, *type);
      if (!fabric) {
        note(fmt::format(
            "No network is written for nodes with NICs of {}: the catalog has no InfiniBand "
            "of that rate, or none for so many nodes.",
            nics));
        continue;
      }
      fabric->name =
          site.fabrics.empty() ? "compute" : fmt::format("compute-{}", site.fabrics.size() + 1);
      if (groups.size() > 1 || cluster_.cpu_nodes > 0) fabric->node_types = group.types;
      fabric->where = {cluster_.file, 0, 0};
      note(
          fmt::format("{} does not tell the kind of network: a fat tree of {} "
                      "without oversubscription is assumed from NICs of {}.",
                      cluster_.source, type->id, nics));
      site.fabrics.push_back(*std::move(fabric));
    }
    if (cluster_.cpu_nodes > 0) note("Nodes without GPUs are on no network.");
  }

  const ScaleOutFabric* fabric_type(const NodeType& node) const {
    constexpr std::pair<double, std::string_view> kByGigabits[] = {
        {200, "ib-hdr"}, {400, "ib-ndr"}, {800, "ib-xdr"}};
    for (const auto& [rate, id] : kByGigabits) {
      if (std::abs(gigabits_of(node) - rate) < 1) return catalog_.find<ScaleOutFabric>(id);
    }
    return nullptr;
  }

  // Returns none if three levels of its switches cannot join that many nodes.
  std::optional<FabricSpec> fabric_of(const NicGroup& group, const ScaleOutFabric& type) const {
    const std::int64_t radix = type.switch_radix.value_or(0);
    const std::int64_t fitting = radix / 2 / group.first->compute_nics;
    const std::int64_t units_max = radix * (radix / 2);
    if (fitting < 1 || fitting * units_max < group.nodes) return std::nullopt;
    FabricSpec fabric;
    fabric.type = type.id;
    fabric.topology = FabricTopology::kFatTree;
    // The described leaves are used if they are equal (the last may be smaller) and one switch has
    // enough ports.
    const std::vector<int>& leaves = group.of_leaf;
    const int size = leaves.front();
    const bool alike = leaves.back() <= size && std::all_of(leaves.begin(), leaves.end() - 1,
                                                            [&](int each) { return each == size; });
    const bool fits = size <= fitting && size * units_max >= group.nodes;
    const bool told =
        cluster_.topology == ImportedTopology::kSwitches && cluster_.unlisted_nodes == 0;
    if (told && alike && fits && leaves.size() > 1) fabric.unit_nodes = size;
    return fabric;
  }

  const Catalog& catalog_;
  const ImportedCluster& cluster_;
  std::vector<std::string> notes_;
};

}  // namespace

FleetSpec spec_of_import(const Catalog& catalog, const ImportedCluster& cluster) {
  return ImportedSpecWriter(catalog, cluster).write();
}

}  // namespace orrery

#include "scheduler/forecast/why_never.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/format/field_writer.hpp"
#include "scheduler/place/pristine_fleet.hpp"

namespace orrery {
namespace {

/// What the fleet has of a type at the sites a gang may use.
struct Stock {
  std::uint64_t devices = 0;
  std::uint64_t units = 0;  ///< of node_devices
  std::uint32_t node_devices_max = 0;
  HostResources host_max;
};

class Reasons {
 public:
  Reasons(PristineFleet& fleet, const GangRequest& gang)
      : fleet_(fleet),
        tree_(fleet.tree()),
        gang_(gang),
        type_(fleet.topology().accelerator(gang.type).id),
        units_((gang.devices + gang.node_devices - 1) / gang.node_devices) {
    count();
  }

  [[nodiscard]] std::string find() {
    std::optional<std::string> reason = too_many();
    if (!reason) reason = host_too_small();
    if (!reason) reason = one_wish_too_much();
    return reason.value_or(
        fmt::format("topology: the wishes can each be met, but not all at once by {} of {}",
                    gang_.devices, type_));
  }

 private:
  [[nodiscard]] bool at_sites(NodeId node) const {
    const std::uint8_t site = tree_[tree_.around(node)].site;
    return site == Place::kAboveSites || (gang_.sites >> site & 1) != 0;
  }

  template <class Visit>
  void for_each_node(const NodeRun& range, Visit&& visit) const {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const NodeId node(range.first.value() + i);
      const NodeGroup& group = fleet_.topology().group(node);
      if (group.type == gang_.type && at_sites(node)) visit(group);
    }
  }

  void count() {
    for_each_node(tree_[PlaceTree::root()].nodes, [&](const NodeGroup& group) {
      stock_.devices += group.devices;
      stock_.units += group.devices / gang_.node_devices;
      stock_.node_devices_max = std::max<std::uint32_t>(stock_.node_devices_max, group.devices);
      stock_.host_max.cpu = std::max(stock_.host_max.cpu, group.host.cpu);
      stock_.host_max.memory = std::max(stock_.host_max.memory, group.host.memory);
      stock_.host_max.cxl = std::max(stock_.host_max.cxl, group.host.cxl);
      stock_.host_max.disk = std::max(stock_.host_max.disk, group.host.disk);
    });
  }

  /// " at stockholm" where not all sites are allowed.
  [[nodiscard]] std::string where() const {
    if (gang_.sites + 1 == 0) return "";
    std::vector<std::string_view> names;
    const auto sites = fleet_.topology().sites();
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if ((gang_.sites >> i & 1) != 0) names.push_back(sites[i].spec.name);
    }
    return fmt::format(" at {}", fmt::join(names, ", "));
  }

  /// "16 nodes of h100", "16 nodes with 4 of h100".
  [[nodiscard]] std::string nodes(std::uint64_t count) const {
    const std::string_view word = count == 1 ? "node" : "nodes";
    if (gang_.node_devices == stock_.node_devices_max) {
      return fmt::format("{} {} of {}", count, word, type_);
    }
    return fmt::format("{} {} with {} of {}", count, word, gang_.node_devices, type_);
  }

  [[nodiscard]] std::optional<std::string> too_many() const {
    if (stock_.devices == 0) return fmt::format("residency: the fleet has no {}{}", type_, where());
    if (gang_.devices > stock_.devices) {
      return fmt::format("accelerators: {} of {} asked, the fleet has {}{}", gang_.devices, type_,
                         stock_.devices, where());
    }
    if (gang_.node_devices > stock_.node_devices_max) {
      return fmt::format("node_accelerators: no node of {} has {}; the largest has {}", type_,
                         gang_.node_devices, stock_.node_devices_max);
    }
    if (!gang_.asks_slice() && gang_.devices / gang_.node_devices > stock_.units) {
      return fmt::format("node_accelerators: {} asked, the fleet has room for {}{}", nodes(units_),
                         stock_.units, where());
    }
    return std::nullopt;
  }

  /// The least that the gang's ranks need on one node.
  [[nodiscard]] std::optional<std::string> host_too_small() const {
    struct Axis {
      std::string_view key;
      std::uint32_t each;
      std::uint32_t most;  ///< 0: not published; of CXL memory: none
      double one;          ///< of a core or a GiB, of the unit it is counted in
      std::string_view unit;
    };
    const HostNeeds& need = gang_.host;
    const HostResources& most = stock_.host_max;
    const std::array<Axis, 4> axes{{{"cpu", need.cpu, most.cpu, 1e-3, "cores"},
                                    {"memory", need.memory, most.memory, 1.0 / 1024, "GiB"},
                                    {"cxl", need.cxl, most.cxl, 1, "GiB"},
                                    {"disk", need.disk, most.disk, 1, "GiB"}}};
    for (const Axis& axis : axes) {
      const std::uint64_t asked = std::uint64_t{axis.each} * gang_.node_devices;
      const bool is_bound = axis.most != 0 || axis.key == "cxl";
      if (!is_bound || asked <= axis.most) continue;
      return fmt::format("host.{}: {} of {} on a node need {:.6g} {}, the largest node has {:.6g}",
                         axis.key, gang_.node_devices, type_, static_cast<double>(asked) * axis.one,
                         axis.unit, axis.most * axis.one);
    }
    return std::nullopt;
  }

  /// Number of units for which the largest place of a level has nodes.
  [[nodiscard]] std::uint64_t largest(TopologyLevel level) const {
    if (level == TopologyLevel::kNode) return stock_.node_devices_max / gang_.node_devices;
    std::uint64_t most = 0;
    for (const Place& place : tree_.places()) {
      if (!place.is(level)) continue;
      std::uint64_t units = 0;
      for_each_node(place.nodes,
                    [&](const NodeGroup& group) { units += group.devices / gang_.node_devices; });
      most = std::max(most, units);
    }
    return most;
  }

  [[nodiscard]] bool fits_without(GangRequest less) const {
    return less != gang_ && fleet_.fits(less);
  }

  [[nodiscard]] std::string required_text() const {
    if (gang_.required == TopologyLevel::kNode) {
      return fmt::format("topology.required: no node has {} of {}; the largest has {}",
                         gang_.devices, type_, stock_.node_devices_max);
    }
    return fmt::format("topology.required: no {} has {}; the largest has {}",
                       word_of(gang_.required), nodes(units_), largest(gang_.required));
  }

  [[nodiscard]] std::string segment_text() const {
    const std::uint64_t most = largest(TopologyLevel::kScaleUp);
    if (most >= gang_.segment) {
      return fmt::format(
          "topology.segment: the fleet does not have enough scale-up domains with {}",
          nodes(gang_.segment));
    }
    return fmt::format("topology.segment: no scale-up domain has {}; the largest has {}",
                       nodes(gang_.segment), most);
  }

  [[nodiscard]] std::string slice_text() const {
    return fmt::format("topology.slice: no torus of {} has a slice of {} x {} x {}", type_,
                       gang_.slice[0], gang_.slice[1], gang_.slice[2]);
  }

  /// The first requirement without which the gang would fit.
  [[nodiscard]] std::optional<std::string> one_wish_too_much() const {
    GangRequest less = gang_;
    less.slice = {};
    if (fits_without(less)) return slice_text();
    less = gang_;
    less.segment = 0;
    if (fits_without(less)) return segment_text();
    less = gang_;
    less.required = TopologyLevel::kFleet;
    if (fits_without(less)) return required_text();
    less = gang_;
    less.exclusive.reset();
    if (fits_without(less)) {
      return fmt::format("topology.exclusive: the fleet does not have {} alone in {} {}",
                         nodes(units_), units_ == 1 ? "a" : "their", word_of(*gang_.exclusive));
    }
    less = gang_;
    less.rails_aligned = false;
    if (fits_without(less)) {
      return fmt::format("topology.rails_aligned: the fleet does not have {} at the same positions",
                         nodes(units_));
    }
    less = gang_;
    less.host = {};
    if (fits_without(less)) {
      return fmt::format("host: too few nodes of {} have the resources of {}", type_,
                         nodes(units_));
    }
    return std::nullopt;
  }

  PristineFleet& fleet_;
  const PlaceTree& tree_;
  const GangRequest& gang_;
  std::string_view type_;
  std::uint64_t units_;
  Stock stock_;
};

/// Types that any option of the role may use.
std::set<FleetTypeId> types_of(const RoleRequest& role) {
  std::set<FleetTypeId> types;
  for (const GangOption& option : role.options) types.insert(option.gang.type);
  return types;
}

/// Places of the role's spread that hold one of its types.
std::uint64_t places_of(const PristineFleet& fleet, const RoleRequest& role) {
  const PlaceTree& tree = fleet.tree();
  const std::set<FleetTypeId> types = types_of(role);
  const std::uint64_t sites = role.options.front().gang.sites;
  std::set<NodeId> places;
  for (std::uint32_t i = 0; i < fleet.topology().node_count(); ++i) {
    const NodeId node(i);
    const std::uint8_t site = tree[tree.around(node)].site;
    if (site != Place::kAboveSites && (sites >> site & 1) == 0) continue;
    if (!types.contains(fleet.topology().group(node).type)) continue;
    const bool alone = role.spread->level == TopologyLevel::kNode;
    places.insert(alone ? node : tree[tree.around(node, role.spread->level)].nodes.first);
  }
  return places.size();
}

}  // namespace

std::string why_never(PristineFleet& fleet, const GangRequest& gang) {
  return Reasons(fleet, gang).find();
}

std::string why_never_together(const PristineFleet& fleet, const JobRequest& job) {
  for (const RoleRequest& role : job.roles) {
    std::uint64_t has = 0;
    for (const FleetTypeId type : types_of(role)) {
      has += fleet.topology().device_count(Topology::root(), type);
    }
    const std::uint64_t asked = std::uint64_t{role.gangs} * role.devices_min;
    if (role.options.front().gang.share == kWholeDevice && asked > has) {
      return fmt::format(
          "role \"{}\": replicas: {} gangs of {} are {} accelerators, the fleet has "
          "{} of its types",
          role.name, role.gangs, role.devices_min, asked, has);
    }
    if (!role.spread) continue;
    const std::uint64_t places = places_of(fleet, role);
    if (role.gangs <= places * role.spread->most) continue;
    return fmt::format("role \"{}\": topology.spread: {} gangs, {} in a {}, the fleet has {}",
                       role.name, role.gangs, role.spread->most, word_of(role.spread->level),
                       places);
  }
  return "roles: each gang would fit, but not all of them at once";
}

}  // namespace orrery

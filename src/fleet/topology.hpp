// fleet/topology.hpp - what a fleet is made of and how it hangs together; immutable once built.
//
// A tree of domains (fleet, site, hall, pod, rack) over nodes and their accelerators, beside it the
// power and cooling tree and the scale-out fabrics of each site. Built by fleet/builder.hpp, shared
// by the live fleet, its snapshots and every view. Domains are numbered level by level, nodes depth
// first, so a domain's nodes are a range. About 100 bytes a node with eight NICs.
// Invariant: a device belongs to exactly one node, one rack, one power path.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "fleet/fabric.hpp"
#include "fleet/ids.hpp"
#include "fleet/scale_up.hpp"
#include "fleet/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

enum class Level : std::uint8_t { kFleet, kSite, kHall, kPod, kRack };

inline std::array<EnumWord<Level>, 5> enum_words(Level) {
  return {{{"fleet", Level::kFleet},
           {"site", Level::kSite},
           {"hall", Level::kHall},
           {"pod", Level::kPod},
           {"rack", Level::kRack}}};
}

struct Domain {
  Level level = Level::kFleet;
  std::uint8_t types = 0;     ///< how many accelerator types it holds
  std::uint32_t name = 0;     ///< position in the table of names
  std::uint32_t ordinal = 0;  ///< from 1 among equals; 0: the only one
  DomainId parent;
  DomainId first_child;  ///< children are contiguous
  std::uint32_t children = 0;
  NodeId first_node;
  std::uint32_t nodes = 0;
  std::uint32_t first_type = 0;  ///< its slice of types_of
};

/// What a host has for jobs beside its accelerators. 0: not published, so it binds nothing; of CXL
/// memory: none.
struct HostResources {
  std::uint32_t cpu = 0;     ///< thousandths of a core
  std::uint32_t memory = 0;  ///< MiB
  std::uint32_t cxl = 0;     ///< GiB
  std::uint32_t disk = 0;    ///< GiB

  friend bool operator==(const HostResources&, const HostResources&) = default;
};

/// Nodes made by one entry of the spec: one type, one set of rules.
struct NodeGroup {
  NodeTypeId node_type;
  FleetTypeId type;
  std::uint16_t devices = 0;         ///< accelerators a node
  HostResources host;                ///< of a node
  std::uint32_t scale_up_nodes = 1;  ///< nodes of one scale-up domain; 1: inside the node
  std::uint32_t scale_up_devices = 1;
  std::optional<TorusSpec> torus;
  std::optional<ScaleUpShape> scale_up_shape;  ///< geometry of one domain, where known
  std::vector<std::string> names;              ///< one a node, when the spec names them
  std::optional<Watts> max_power;              ///< of a node; the spec's or the catalog's
  std::optional<Watts> typical_power;
  bool power_assumed = false;  ///< max_power is the top of an assumed range
  NodeOwnership ownership = NodeOwnership::kRented;
};

/// 20 bytes a node.
struct NodePlace {
  DomainId rack;
  DeviceId first_device;
  NodeId scale_up_first;     ///< first node of its scale-up domain
  std::uint32_t occurrence;  ///< position among the nodes of its group
  std::uint32_t group;
};

enum class PowerKind : std::uint8_t { kSiteCap, kFeeds, kUps, kRow, kRack, kCoolingLoop };

inline std::array<EnumWord<PowerKind>, 6> enum_words(PowerKind) {
  return {{{"site-cap", PowerKind::kSiteCap},
           {"feeds", PowerKind::kFeeds},
           {"ups", PowerKind::kUps},
           {"row", PowerKind::kRow},
           {"rack", PowerKind::kRack},
           {"cooling-loop", PowerKind::kCoolingLoop}}};
}

/// A place where power is limited: what hangs below it may not draw more than `limit`.
struct PowerDomain {
  PowerKind kind = PowerKind::kRack;
  std::string name;      ///< empty for a rack: it is its domain's
  std::string supply;    ///< what the limit rests on: "4 x 500 kW, N+1"; empty for plain limits
  SourcePosition where;  ///< of the spec that gives the limit
  PowerDomainId parent;  ///< the next one up the electric path; none for loops and the top
  PowerDomainId loop;    ///< of a rack: the cooling loop its heat goes to
  DomainId domain;       ///< of a rack
  std::optional<Watts> limit;
  Watts max_power;      ///< sum of the nodes' ratings below
  Watts typical_power;  ///< under a training job
};

/// Neighbouring nodes.
struct NodeRun {
  NodeId first;
  std::uint32_t count = 0;

  [[nodiscard]] bool contains(NodeId node) const { return node.value() - first.value() < count; }
  friend bool operator==(const NodeRun&, const NodeRun&) = default;
};

/// One scale-out fabric and the nodes on it.
struct FabricInstance {
  std::string name;
  DomainId site;
  const ScaleOutFabric* type = nullptr;
  Routing routing = Routing::kEcmp;
  bool in_network_reduction = false;
  Fabric graph;
  std::vector<NodeId> nodes;  ///< by the graph's node index
  std::vector<NodeRun> leaf_units;
  std::vector<NodeRun> pods;     ///< or dragonfly groups
  std::uint32_t first_link = 0;  ///< fleet-wide id of its link 0
};

struct SiteFacts {
  DomainId domain;
  SiteSpec spec;  ///< halls left out: they are the tree
  double pue = 1;
  bool pue_assumed = false;  ///< the middle of a cooling class's range
  std::optional<GramsCo2PerJoule> carbon;
  std::optional<DollarsPerJoule> electricity;
};

class Topology;

/// The runs of neighbouring nodes of a fabric between which traffic stays within a tier: kLeaf,
/// those under one leaf unit or router; kSpine, those of one pod or dragonfly group. They cover the
/// fabric's nodes, ascending; a node that shares the tier with neither neighbour is a run of one.
/// Made with the topology. Precondition: kLeaf or kSpine.
[[nodiscard]] std::span<const NodeRun> network_groups(const Topology& topology, FabricId fabric,
                                                      NetworkTier tier);

/// What the switches and storage systems of a site draw, where their makers say how much.
[[nodiscard]] Watts shared_power(const Topology& topology, const SiteFacts& site);

class Topology {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Outlives the topology.
  [[nodiscard]] const Catalog& catalog() const { return *catalog_; }

  [[nodiscard]] std::span<const Domain> domains() const { return domains_; }
  [[nodiscard]] const Domain& domain(DomainId id) const { return domains_[id.value()]; }
  [[nodiscard]] static DomainId root() { return DomainId(0); }
  /// The domain itself or its ancestor at `level`. Precondition: level is not below the domain's.
  [[nodiscard]] DomainId ancestor(DomainId id, Level level) const;
  /// "rack-03"
  [[nodiscard]] std::string short_name(DomainId id) const;
  /// "east/hall-1/su-2/rack-3"; the fleet's own name for the root.
  [[nodiscard]] std::string path(DomainId id) const;

  [[nodiscard]] std::uint32_t node_count() const {
    return static_cast<std::uint32_t>(places_.size());
  }
  [[nodiscard]] std::uint32_t device_count() const { return device_count_; }
  [[nodiscard]] const NodePlace& place(NodeId id) const { return places_[id.value()]; }
  [[nodiscard]] const NodeGroup& group(NodeId id) const { return groups_[place(id).group]; }
  [[nodiscard]] std::span<const NodeGroup> groups() const { return groups_; }
  [[nodiscard]] const NodeType& node_type(const NodeGroup& group) const {
    return catalog_->all<NodeType>()[group.node_type.value()];
  }
  /// The spec's name, else "<path of the rack>/n<ordinal>".
  [[nodiscard]] std::string node_name(NodeId id) const;
  /// The node a device sits in. O(log nodes).
  [[nodiscard]] NodeId node_of(DeviceId id) const;

  [[nodiscard]] std::uint32_t type_count() const {
    return static_cast<std::uint32_t>(types_.size());
  }
  [[nodiscard]] const Accelerator& accelerator(FleetTypeId id) const {
    return catalog_->all<Accelerator>()[types_[id.value()].value()];
  }
  /// The type of a catalog id or alias, when the fleet has any.
  [[nodiscard]] std::optional<FleetTypeId> find_type(std::string_view name) const;
  /// Types a domain holds, ascending; its free counts stand in the same order.
  [[nodiscard]] std::span<const FleetTypeId> types_of(DomainId id) const;
  /// Devices of the largest node of a type.
  [[nodiscard]] std::uint32_t node_devices_max(FleetTypeId type) const {
    return node_devices_max_[type.value()];
  }
  /// Where the row of a type's counts in a domain begins (fleet/state.hpp); none where the domain
  /// has no such device. O(types of the domain).
  [[nodiscard]] std::optional<std::uint32_t> count_row(DomainId id, FleetTypeId type) const {
    const Domain& of = domain(id);
    for (std::uint32_t i = of.first_type; i < of.first_type + of.types; ++i) {
      if (domain_types_[i] == type) return i << count_row_bits_;
    }
    return std::nullopt;
  }
  /// The row of the first of its types.
  [[nodiscard]] std::uint32_t first_count_row(DomainId id) const {
    return domain(id).first_type << count_row_bits_;
  }
  /// Cells of all rows of counts.
  [[nodiscard]] std::uint32_t count_cells() const {
    return static_cast<std::uint32_t>(domain_types_.size()) << count_row_bits_;
  }
  /// Devices of a type in a domain, free or not. O(types of the domain).
  [[nodiscard]] std::uint32_t device_count(DomainId id, FleetTypeId type) const;

  [[nodiscard]] std::span<const PowerDomain> power_domains() const { return power_; }
  [[nodiscard]] const PowerDomain& power(PowerDomainId id) const { return power_[id.value()]; }
  /// The power domain of a rack.
  [[nodiscard]] PowerDomainId power_of(DomainId rack) const;
  /// "hall-1/row-3", a rack's path, ...
  [[nodiscard]] std::string power_name(PowerDomainId id) const;
  /// By that name. Error: none has it, with the name that is near. O(domains).
  [[nodiscard]] Result<PowerDomainId> power_named(std::string_view name) const;

  [[nodiscard]] std::span<const FabricInstance> fabrics() const { return fabrics_; }
  /// Links of all fabrics.
  [[nodiscard]] std::uint32_t link_count() const { return link_count_; }

  [[nodiscard]] std::span<const SiteFacts> sites() const { return sites_; }
  [[nodiscard]] std::span<const WanSpec> wan() const { return wan_; }

 private:
  friend class TopologyBuilder;

  std::string name_;
  std::string description_;
  const Catalog* catalog_ = nullptr;
  std::vector<std::string> names_;
  std::vector<Domain> domains_;
  std::vector<NodePlace> places_;
  std::vector<NodeGroup> groups_;
  std::vector<AcceleratorTypeId> types_;
  std::vector<FleetTypeId> domain_types_;
  std::vector<std::uint32_t> domain_devices_;
  std::vector<std::uint32_t> node_devices_max_;  ///< by type
  std::vector<PowerDomain> power_;
  std::vector<PowerDomainId> rack_power_;  ///< by rack, from the first rack's domain on
  DomainId first_rack_;
  std::vector<FabricInstance> fabrics_;
  std::vector<SiteFacts> sites_;
  std::vector<WanSpec> wan_;
  std::uint32_t device_count_ = 0;
  std::uint32_t count_row_bits_ = 0;  ///< a row has two to the power of it cells
  std::uint32_t link_count_ = 0;
};

}  // namespace orrery

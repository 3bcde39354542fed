// fleet/topology.hpp - the parts of a fleet and how they are connected; immutable once built.
//
// A tree of domains (fleet, site, hall, pod, rack) over nodes and their accelerators, beside it the
// power and cooling tree and the scale-out fabrics of each site. Built by fleet/spec/builder.hpp,
// shared by the live fleet, its snapshots and every view. Domains are numbered level by level,
// nodes depth first, so a domain's nodes are a range. About 100 bytes per node with eight NICs.
// Invariant: a device belongs to exactly one node, one rack, one power path.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.hpp"
#include "fleet/ids.hpp"
#include "fleet/network/fabric.hpp"
#include "fleet/network/scale_up.hpp"
#include "fleet/spec/spec.hpp"
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
  std::uint8_t types = 0;     ///< number of accelerator types in it
  std::uint32_t name = 0;     ///< index into the table of names
  std::uint32_t ordinal = 0;  ///< from 1 among equal siblings; 0: the only one
  DomainId parent;
  DomainId first_child;  ///< children are contiguous
  std::uint32_t children = 0;
  NodeId first_node;
  std::uint32_t nodes = 0;
  std::uint32_t first_type = 0;  ///< begin of its slice for types_of()
};

/// Resources of a host for jobs beside its accelerators. 0: not published, so it limits nothing;
/// for CXL memory: none.
struct HostResources {
  std::uint32_t cpu = 0;     ///< thousandths of a core
  std::uint32_t memory = 0;  ///< MiB
  std::uint32_t cxl = 0;     ///< GiB
  std::uint32_t disk = 0;    ///< GiB

  friend bool operator==(const HostResources&, const HostResources&) = default;
};

/// Nodes made by one entry of the spec, with one type and one set of rules.
struct NodeGroup {
  NodeTypeId node_type;
  FleetTypeId type;
  std::uint16_t devices = 0;         ///< accelerators per node
  HostResources host;                ///< per node
  std::uint32_t scale_up_nodes = 1;  ///< nodes of one scale-up domain; 1: inside the node
  std::uint32_t scale_up_devices = 1;
  std::optional<TorusSpec> torus;
  std::optional<ScaleUpShape> scale_up_shape;  ///< geometry of one domain, where known
  std::vector<std::string> names;              ///< one per node, if the spec names them
  std::optional<Watts> max_power;              ///< per node; from the spec or the catalog
  std::optional<Watts> typical_power;
  bool power_assumed = false;  ///< max_power is the top of an assumed range
  NodeOwnership ownership = NodeOwnership::kRented;
};

/// The place of a node; 20 bytes.
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

/// A place where power is limited: everything below it may not draw more than `limit`.
struct PowerDomain {
  PowerKind kind = PowerKind::kRack;
  std::string name;      ///< empty for a rack, which has its domain's name
  std::string supply;    ///< basis of the limit: "4 x 500 kW, N+1"; empty for plain limits
  SourcePosition where;  ///< position in the spec that gives the limit
  PowerDomainId parent;  ///< next one up the electric path; none for loops and the top
  PowerDomainId loop;    ///< for a rack: the cooling loop that its heat goes to
  DomainId domain;       ///< the rack's domain, for a rack
  std::optional<Watts> limit;
  Watts max_power;      ///< sum of the nodes' ratings below
  Watts typical_power;  ///< under a training job
};

/// A run of consecutive nodes.
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
  SiteSpec spec;  ///< without halls, which are in the tree
  double pue = 1;
  bool pue_assumed = false;  ///< the middle of a cooling class's range
  std::optional<GramsCo2PerJoule> carbon;
  std::optional<DollarsPerJoule> electricity;
};

class Topology;

/// Returns the runs of consecutive nodes of a fabric between which traffic stays within a tier:
/// kLeaf, nodes under one leaf unit or router; kSpine, nodes of one pod or dragonfly group. They
/// cover the fabric's nodes, ascending; a node that shares the tier with neither neighbour is a run
/// of one. Computed with the topology. Precondition: kLeaf or kSpine.
[[nodiscard]] std::span<const NodeRun> network_groups(const Topology& topology, FabricId fabric,
                                                      NetworkTier tier);

/// Returns the power of the switches and storage systems of a site, as far as it is published.
[[nodiscard]] Watts shared_power(const Topology& topology, const SiteFacts& site);

class Topology {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// The catalog, which outlives the topology.
  [[nodiscard]] const Catalog& catalog() const { return *catalog_; }

  [[nodiscard]] std::span<const Domain> domains() const { return domains_; }
  [[nodiscard]] const Domain& domain(DomainId id) const { return domains_[id.value()]; }
  [[nodiscard]] static DomainId root() { return DomainId(0); }
  /// The domain itself or its ancestor at `level`. Precondition: level is not below the domain's.
  [[nodiscard]] DomainId ancestor(DomainId id, Level level) const;
  /// Returns a name such as "rack-03".
  [[nodiscard]] std::string short_name(DomainId id) const;
  /// Returns a path such as "east/hall-1/su-2/rack-3"; for the root the fleet's name.
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
  /// Returns the spec's name for a node, else "<path of the rack>/n<ordinal>".
  [[nodiscard]] std::string node_name(NodeId id) const;
  /// Returns the node that has a device. O(log nodes).
  [[nodiscard]] NodeId node_of(DeviceId id) const;

  [[nodiscard]] std::uint32_t type_count() const {
    return static_cast<std::uint32_t>(types_.size());
  }
  [[nodiscard]] const Accelerator& accelerator(FleetTypeId id) const {
    return catalog_->all<Accelerator>()[types_[id.value()].value()];
  }
  /// Finds the type of a catalog id or alias, if the fleet has it.
  [[nodiscard]] std::optional<FleetTypeId> find_type(std::string_view name) const;
  /// Types of a domain, ascending; its free counts are in the same order.
  [[nodiscard]] std::span<const FleetTypeId> types_of(DomainId id) const;
  /// Devices of the largest node of a type.
  [[nodiscard]] std::uint32_t node_devices_max(FleetTypeId type) const {
    return node_devices_max_[type.value()];
  }
  /// Returns where the row of a type's counts in a domain begins (fleet/state.hpp); none if the
  /// domain has no such device. O(types of the domain).
  [[nodiscard]] std::optional<std::uint32_t> count_row(DomainId id, FleetTypeId type) const {
    const Domain& of = domain(id);
    for (std::uint32_t i = of.first_type; i < of.first_type + of.types; ++i) {
      if (domain_types_[i] == type) return i << count_row_bits_;
    }
    return std::nullopt;
  }
  /// Returns where the row of the first of the domain's types begins.
  [[nodiscard]] std::uint32_t first_count_row(DomainId id) const {
    return domain(id).first_type << count_row_bits_;
  }
  /// Number of cells of all rows of counts.
  [[nodiscard]] std::uint32_t count_cells() const {
    return static_cast<std::uint32_t>(domain_types_.size()) << count_row_bits_;
  }
  /// Number of devices of a type in a domain, free or not. O(types of the domain).
  [[nodiscard]] std::uint32_t device_count(DomainId id, FleetTypeId type) const;

  [[nodiscard]] std::span<const PowerDomain> power_domains() const { return power_; }
  [[nodiscard]] const PowerDomain& power(PowerDomainId id) const { return power_[id.value()]; }
  /// The power domain of a rack.
  [[nodiscard]] PowerDomainId power_of(DomainId rack) const;
  /// Returns a name such as "hall-1/row-3", or a rack's path.
  [[nodiscard]] std::string power_name(PowerDomainId id) const;
  /// Finds a power domain by its power_name(). Error: there is none; it gives the nearest name.
  /// O(domains).
  [[nodiscard]] Result<PowerDomainId> power_named(std::string_view name) const;

  [[nodiscard]] std::span<const FabricInstance> fabrics() const { return fabrics_; }
  /// Number of links of all fabrics.
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
  std::vector<PowerDomainId> rack_power_;  ///< by rack, starting at first_rack_
  DomainId first_rack_;
  std::vector<FabricInstance> fabrics_;
  std::vector<SiteFacts> sites_;
  std::vector<WanSpec> wan_;
  std::uint32_t device_count_ = 0;
  std::uint32_t count_row_bits_ = 0;  ///< a row has 2^count_row_bits_ cells
  std::uint32_t link_count_ = 0;
};

}  // namespace orrery

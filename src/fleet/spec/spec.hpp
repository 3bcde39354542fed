// fleet/spec/spec.hpp - a fleet as written in a spec file (kind: Fleet), before anything is built
// from it.
//
// Read from YAML by read_fleet_spec, written back by write_fleet_spec; fleet/spec/builder.hpp turns
// it into a fleet. Every struct keeps its position, so that a rack over its limit is reported with
// its line in the spec. docs/formats.md describes the keys.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/fact_overlay.hpp"
#include "hardware/link.hpp"

namespace orrery {

/// How many of a group of equal units may fail before capacity is lost.
enum class Redundancy { kN, kN1, k2N };

inline std::array<EnumWord<Redundancy>, 3> enum_words(Redundancy) {
  return {{{"N", Redundancy::kN}, {"N+1", Redundancy::kN1}, {"2N", Redundancy::k2N}}};
}

/// `units` machines of `capacity` each, of which some are spare.
struct RedundantSupply {
  std::string name;
  Watts capacity;
  int units = 1;
  Redundancy redundancy = Redundancy::kN;
  SourcePosition where;

  /// Power that may be drawn while the promised number of units is down: N: all of them; N+1: all
  /// but one; 2N: half.
  [[nodiscard]] Watts usable() const;
};

template <class Visitor, SameStruct<RedundantSupply> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("name", s.name);
  visitor.required("capacity", s.capacity);
  visitor.optional("units", s.units);
  visitor.optional("redundancy", s.redundancy);
}

/// Whether machines are rented, at a price that includes their electricity, or belong to the
/// operator, who pays for their electricity.
enum class NodeOwnership : std::uint8_t { kRented, kOwned };

inline std::array<EnumWord<NodeOwnership>, 2> enum_words(NodeOwnership) {
  return {{{"rented", NodeOwnership::kRented}, {"owned", NodeOwnership::kOwned}}};
}

/// Equal nodes of one rack.
struct NodeGroupSpec {
  std::string type;
  int count = 1;
  std::optional<std::string> names;  ///< host list, "node[001-004]"
  std::optional<Watts> max_power;    ///< the operator's own figure for one node
  std::optional<Watts> typical_power;
  std::optional<NodeOwnership> ownership;  ///< else the site's
  SourcePosition where;
};

template <class Visitor, SameStruct<NodeGroupSpec> Self>
void describe(Visitor& visitor, Self& n) {
  visitor.required("type", n.type);
  visitor.optional("count", n.count);
  visitor.optional("names", n.names);
  visitor.optional("max_power", n.max_power);
  visitor.optional("typical_power", n.typical_power);
  visitor.optional("ownership", n.ownership);
}

/// Accelerators joined as a torus; a cube is the block that optical switches rearrange.
struct TorusSpec {
  std::vector<int> shape;
  std::vector<int> cube;
  bool twisted = false;
  SourcePosition where;
};

template <class Visitor, SameStruct<TorusSpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("shape", t.shape);
  visitor.optional("cube", t.cube);
  visitor.optional("twisted", t.twisted);
}

struct RackSpec {
  std::string name = "rack";
  int count = 1;
  std::vector<NodeGroupSpec> nodes;
  std::optional<std::string> cooling;  ///< id of a CoolingClass
  std::optional<Watts> power_limit;
  std::optional<std::string> loop;  ///< name of one of the hall's cooling loops
  std::optional<TorusSpec> torus;   ///< one scale-up domain per rack
  SourcePosition where;
};

template <class Visitor, SameStruct<RackSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("name", r.name);
  visitor.optional("count", r.count);
  visitor.required("nodes", r.nodes);
  visitor.optional("cooling", r.cooling);
  visitor.optional("power_limit", r.power_limit);
  visitor.optional("loop", r.loop);
  visitor.optional("torus", r.torus);
}

struct PodSpec {
  std::string name = "pod";
  int count = 1;
  std::vector<RackSpec> racks;
  std::optional<TorusSpec> torus;  ///< one scale-up domain per pod
  SourcePosition where;
};

template <class Visitor, SameStruct<PodSpec> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.optional("name", p.name);
  visitor.optional("count", p.count);
  visitor.required("racks", p.racks);
  visitor.optional("torus", p.torus);
}

struct RowSpec {
  int racks = 10;
  Watts capacity;
  SourcePosition where;
};

template <class Visitor, SameStruct<RowSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("racks", r.racks);
  visitor.required("capacity", r.capacity);
}

struct HallSpec {
  std::string name = "hall";
  std::optional<RedundantSupply> ups;
  std::optional<RowSpec> rows;
  std::vector<RedundantSupply> cooling_loops;
  std::vector<PodSpec> pods;
  SourcePosition where;
};

template <class Visitor, SameStruct<HallSpec> Self>
void describe(Visitor& visitor, Self& h) {
  visitor.optional("name", h.name);
  visitor.optional("ups", h.ups);
  visitor.optional("rows", h.rows);
  visitor.optional("cooling_loops", h.cooling_loops);
  visitor.required("pods", h.pods);
}

struct DragonflySpec {
  int terminals = 0;
  int routers_per_group = 0;
  int global_links_per_router = 0;
};

template <class Visitor, SameStruct<DragonflySpec> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("terminals", d.terminals);
  visitor.required("routers_per_group", d.routers_per_group);
  visitor.required("global_links_per_router", d.global_links_per_router);
}

enum class FabricTopology {
  kFatTree,
  kRailOptimizedFatTree,
  kRailOnlyFatTree,
  kDragonfly,
  kDragonflyPlus,
};

inline std::array<EnumWord<FabricTopology>, 5> enum_words(FabricTopology) {
  return {{{"fat-tree", FabricTopology::kFatTree},
           {"rail-optimized-fat-tree", FabricTopology::kRailOptimizedFatTree},
           {"rail-only-fat-tree", FabricTopology::kRailOnlyFatTree},
           {"dragonfly", FabricTopology::kDragonfly},
           {"dragonfly+", FabricTopology::kDragonflyPlus}}};
}

struct FabricSpec {
  std::string name = "compute";
  std::string type;  ///< id of a ScaleOutFabric
  FabricTopology topology = FabricTopology::kFatTree;
  std::vector<std::string> node_types;  ///< empty: every node of the site
  double leaf_oversubscription = 1;
  double spine_oversubscription = 1;
  int planes = 1;
  std::optional<int> switch_radix;  ///< if the catalog's fabric has none, or another is used
  std::optional<int> unit_nodes;    ///< nodes under one leaf, or one leaf of each rail
  std::optional<int> pod_nodes;     ///< nodes under one set of spines
  std::optional<DragonflySpec> dragonfly;
  std::optional<Routing> routing;
  std::optional<bool> in_network_reduction;
  SourcePosition where;
};

template <class Visitor, SameStruct<FabricSpec> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.optional("name", f.name);
  visitor.required("type", f.type);
  visitor.required("topology", f.topology);
  visitor.optional("node_types", f.node_types);
  visitor.optional("leaf_oversubscription", f.leaf_oversubscription);
  visitor.optional("spine_oversubscription", f.spine_oversubscription);
  visitor.optional("planes", f.planes);
  visitor.optional("switch_radix", f.switch_radix);
  visitor.optional("unit_nodes", f.unit_nodes);
  visitor.optional("pod_nodes", f.pod_nodes);
  visitor.optional("dragonfly", f.dragonfly);
  visitor.optional("routing", f.routing);
  visitor.optional("in_network_reduction", f.in_network_reduction);
}

struct StorageSpec {
  std::string name;
  std::string system;  ///< id of a StorageSystem
  int units = 1;
  SourcePosition where;
};

template <class Visitor, SameStruct<StorageSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("name", s.name);
  visitor.required("system", s.system);
  visitor.optional("units", s.units);
}

struct SiteSpec {
  std::string name = "site";
  std::optional<std::string> region;     ///< region in the catalog's carbon and electricity tables
  std::optional<std::string> residency;  ///< a label data rules refer to, such as "eu"
  std::optional<double> pue;             ///< else the middle of the racks' cooling classes
  std::optional<Watts> power_cap;        ///< limit of the facility, at the meter
  std::optional<DollarsPerJoule> electricity;
  std::optional<GramsCo2PerJoule> carbon;
  std::optional<double> price_factor;      ///< on the catalog's rental prices
  std::optional<NodeOwnership> ownership;  ///< else rented
  std::vector<RedundantSupply> feeds;
  std::vector<HallSpec> halls;
  std::vector<FabricSpec> fabrics;
  std::vector<StorageSpec> storage;
  SourcePosition where;
};

template <class Visitor, SameStruct<SiteSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("name", s.name);
  visitor.optional("region", s.region);
  visitor.optional("residency", s.residency);
  visitor.optional("pue", s.pue);
  visitor.optional("power_cap", s.power_cap);
  visitor.optional("electricity", s.electricity);
  visitor.optional("carbon", s.carbon);
  visitor.optional("price_factor", s.price_factor);
  visitor.optional("ownership", s.ownership);
  visitor.optional("feeds", s.feeds);
  visitor.required("halls", s.halls);
  visitor.optional("fabrics", s.fabrics);
  visitor.optional("storage", s.storage);
}

struct WanSpec {
  std::string from;
  std::string to;
  BytesPerSecond bandwidth;
  Seconds latency;
  std::optional<DollarsPerByte> egress;
  SourcePosition where;
};

template <class Visitor, SameStruct<WanSpec> Self>
void describe(Visitor& visitor, Self& w) {
  visitor.required("from", w.from);
  visitor.required("to", w.to);
  visitor.required("bandwidth", w.bandwidth);
  visitor.required("latency", w.latency);
  visitor.optional("egress", w.egress);
}

struct FleetSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Fleet";
  std::string name;
  std::string description;
  std::vector<SiteSpec> sites;
  std::vector<WanSpec> wan;
  SourcePosition where;
};

template <class Visitor, SameStruct<FleetSpec> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("apiVersion", f.api_version);
  visitor.required("kind", f.kind);
  visitor.required("name", f.name);
  visitor.optional("description", f.description);
  visitor.required("sites", f.sites);
  visitor.optional("wan", f.wan);
}

/// Reads a document as a spec. Checks only its own structure; the builder checks references to the
/// catalog. Errors with file:line:column.
[[nodiscard]] Result<FleetSpec> read_fleet_spec(const Document& document);
[[nodiscard]] Result<FleetSpec> load_fleet_spec(const std::string& path);

/// A fleet, and the facts of the documents that follow it: prices and other rows of the catalog,
/// constants of the calibration.
struct FleetFile {
  FleetSpec spec;
  FactOverlay facts;
};

/// Reads a Fleet document and any number of documents of kind Catalog or Calibration that follow
/// it, each after a line of "---". Their content is checked where they are used (Facts::with).
/// `file` is for messages. Errors with file:line:column.
[[nodiscard]] Result<FleetFile> read_fleet_file(std::string_view text, const std::string& file);
[[nodiscard]] Result<FleetFile> load_fleet_file(const std::string& path);

/// Returns YAML that read_fleet_spec reads back to an equal spec; defaults are left out.
[[nodiscard]] std::string write_fleet_spec(const FleetSpec& spec);

/// Returns the spec as JSON: quantities as text with their unit, absent keys left out.
[[nodiscard]] nlohmann::ordered_json fleet_spec_json(const FleetSpec& spec);

}  // namespace orrery

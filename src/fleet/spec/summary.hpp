// fleet/spec/summary.hpp - the totals of a fleet: accelerators, rates, memory, network, power,
// money.
//
// Sums cover known figures only; unpublished ones are listed, never guessed, and figures based on
// an assumed power are marked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/format/field_writer.hpp"
#include "fleet/topology.hpp"

namespace orrery {

struct TypeTotal {
  std::string accelerator;
  std::uint32_t count = 0;
  std::uint32_t nodes = 0;
  std::string scale_up;  ///< "8 in a node (nvswitch)"
};

template <class Visitor, SameStruct<TypeTotal> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("accelerator", t.accelerator);
  visitor.required("count", t.count);
  visitor.required("nodes", t.nodes);
  visitor.required("scale_up", t.scale_up);
}

struct FabricTotal {
  std::string name;
  std::string site;
  std::string type;
  std::string topology;
  std::uint32_t nodes = 0;
  std::uint32_t leaves = 0;
  std::uint32_t spines = 0;
  std::uint32_t cores = 0;
  std::uint64_t node_cables = 0;
  std::uint64_t leaf_spine_cables = 0;
  std::uint64_t spine_core_cables = 0;
  BytesPerSecond bisection;
  std::vector<double> oversubscription;
  std::optional<Watts> switch_power;  ///< null: not published for this switch
};

template <class Visitor, SameStruct<FabricTotal> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("name", f.name);
  visitor.required("site", f.site);
  visitor.required("type", f.type);
  visitor.required("topology", f.topology);
  visitor.required("nodes", f.nodes);
  visitor.required("leaves", f.leaves);
  visitor.required("spines", f.spines);
  visitor.required("cores", f.cores);
  visitor.required("node_cables", f.node_cables);
  visitor.required("leaf_spine_cables", f.leaf_spine_cables);
  visitor.required("spine_core_cables", f.spine_core_cables);
  visitor.required("bisection_bytes_per_s", f.bisection);
  visitor.required("oversubscription", f.oversubscription);
  visitor.optional("switch_power_watts", f.switch_power);
}

/// A power domain whose nodes draw more in training than its limit.
struct OversubscribedPower {
  std::string domain;
  Watts load;  ///< in training
  Watts limit;
};

template <class Visitor, SameStruct<OversubscribedPower> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("domain", p.domain);
  visitor.required("training_watts", p.load);
  visitor.required("limit_watts", p.limit);
}

struct PowerTotal {
  Watts it_max;
  Watts it_typical;
  Watts facility_max;
  Watts facility_typical;
  std::vector<std::string> assumed;         ///< node types whose power is an assumed range
  std::vector<std::string> oversubscribed;  ///< domains above their limit at full nameplate
  std::vector<OversubscribedPower> oversubscribed_in_training;  ///< largest excess first
};

template <class Visitor, SameStruct<PowerTotal> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("it_max_watts", p.it_max);
  visitor.required("it_typical_watts", p.it_typical);
  visitor.required("facility_max_watts", p.facility_max);
  visitor.required("facility_typical_watts", p.facility_typical);
  visitor.required("assumed_for", p.assumed);
  visitor.required("oversubscribed", p.oversubscribed);
  visitor.required("oversubscribed_in_training", p.oversubscribed_in_training);
}

struct MoneyTotal {
  Dollars capex;                           ///< servers, if priced; else accelerators only
  std::vector<std::string> capex_partial;  ///< node types counted by their accelerators only
  std::vector<std::string> capex_missing;  ///< node types without any price
  DollarsPerHour rent;                     ///< on demand, all accelerators
  std::vector<std::string> rent_missing;   ///< accelerators without a rental price
  std::optional<DollarsPerHour> energy;    ///< at typical power; null: some site has no price
};

template <class Visitor, SameStruct<MoneyTotal> Self>
void describe(Visitor& visitor, Self& m) {
  visitor.required("capex_usd", m.capex);
  visitor.required("capex_accelerators_only", m.capex_partial);
  visitor.required("capex_missing", m.capex_missing);
  visitor.required("rent_usd_per_hour", m.rent);
  visitor.required("rent_missing", m.rent_missing);
  visitor.optional("energy_usd_per_hour", m.energy);
}

struct StorageTotal {
  std::string name;
  std::string site;
  std::string system;
  int units = 0;
  BytesPerSecond read;
  std::optional<BytesPerSecond> write;
  std::optional<Bytes> usable;
};

template <class Visitor, SameStruct<StorageTotal> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("name", s.name);
  visitor.required("site", s.site);
  visitor.required("system", s.system);
  visitor.required("units", s.units);
  visitor.required("read_bytes_per_s", s.read);
  visitor.optional("write_bytes_per_s", s.write);
  visitor.optional("usable_bytes", s.usable);
}

struct FleetSummary {
  std::string name;
  std::uint32_t sites = 0;
  std::uint32_t halls = 0;
  std::uint32_t pods = 0;
  std::uint32_t racks = 0;
  std::uint32_t nodes = 0;
  std::uint32_t accelerators = 0;
  std::vector<TypeTotal> types;
  /// Format -> dense peak of the accelerators that publish it.
  std::vector<std::pair<std::string, FlopsPerSecond>> dense_flops;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  Bytes host_memory;
  std::vector<FabricTotal> fabrics;
  std::vector<StorageTotal> storage;
  PowerTotal power;
  MoneyTotal money;
};

template <class Visitor, SameStruct<FleetSummary> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("name", f.name);
  visitor.required("sites", f.sites);
  visitor.required("halls", f.halls);
  visitor.required("pods", f.pods);
  visitor.required("racks", f.racks);
  visitor.required("nodes", f.nodes);
  visitor.required("accelerators", f.accelerators);
  visitor.required("types", f.types);
  visitor.required("dense_flops", f.dense_flops);
  visitor.required("memory_bytes", f.memory);
  visitor.required("memory_bandwidth_bytes_per_s", f.memory_bandwidth);
  visitor.required("host_memory_bytes", f.host_memory);
  visitor.required("fabrics", f.fabrics);
  visitor.required("storage", f.storage);
  visitor.required("power", f.power);
  visitor.required("money", f.money);
}

/// Computes the totals of a fleet. O(nodes).
[[nodiscard]] FleetSummary summarize(const Topology& topology);

}  // namespace orrery

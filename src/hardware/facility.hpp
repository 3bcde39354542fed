// hardware/facility.hpp - what a building provides: cooling classes, power levels, grids, storage.
//
// Rows of catalog/power_cooling.yaml and catalog/storage.yaml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

struct CoolingClass {
  std::string id;
  std::vector<double> pue;  ///< [low, high], the whole facility
  Watts max_rack;
  double liquid_capture_fraction = 0;  ///< of the rack's heat, carried away by liquid
  std::vector<double> coolant_supply_c;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<CoolingClass> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("id", c.id);
  visitor.required("pue", c.pue);
  visitor.required("max_rack_watts", c.max_rack);
  visitor.required("liquid_capture_fraction", c.liquid_capture_fraction);
  visitor.optional("coolant_supply_c", c.coolant_supply_c);
  describe_inline(visitor, c.provenance);
}

struct PowerLevel {
  std::string level;
  std::vector<Watts> typical;  ///< [low, high], both the same when the source gives one figure
  std::optional<double> efficiency;
  std::optional<double> eco_mode_efficiency;
  std::optional<std::string> redundancy;
  std::vector<double> ride_through_s;
  std::optional<double> breaker_derate_fraction;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<PowerLevel> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("level", p.level);
  visitor.optional("typical_watts", p.typical);
  visitor.optional("efficiency", p.efficiency);
  visitor.optional("eco_mode_efficiency", p.eco_mode_efficiency);
  visitor.optional("redundancy", p.redundancy);
  visitor.optional("ride_through_s", p.ride_through_s);
  visitor.optional("breaker_derate_fraction", p.breaker_derate_fraction);
  describe_inline(visitor, p.provenance);
}

struct GridCarbon {
  std::string region;
  GramsCo2PerKwh value;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<GridCarbon> Self>
void describe(Visitor& visitor, Self& g) {
  visitor.required("region", g.region);
  visitor.required("value", g.value);
  describe_inline(visitor, g.provenance);
}

struct ElectricityPrice {
  std::string region;
  DollarsPerKwh low;
  DollarsPerKwh typical;
  DollarsPerKwh high;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ElectricityPrice> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.required("region", e.region);
  visitor.required("low", e.low);
  visitor.required("typical", e.typical);
  visitor.required("high", e.high);
  describe_inline(visitor, e.provenance);
}

/// Rates are sequential, large blocks, of one `unit`.
struct StorageSystem {
  std::string id;
  std::string kind;
  std::string unit;
  BytesPerSecond read;
  std::optional<BytesPerSecond> write;
  std::optional<Bytes> usable;
  std::optional<Watts> power;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<StorageSystem> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("id", s.id);
  visitor.required("kind", s.kind);
  visitor.required("unit", s.unit);
  visitor.required("read_bytes_per_s", s.read);
  visitor.optional("write_bytes_per_s", s.write);
  visitor.optional("usable_bytes", s.usable);
  visitor.optional("power_watts", s.power);
  describe_inline(visitor, s.provenance);
}

}  // namespace orrery

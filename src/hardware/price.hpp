// hardware/price.hpp - what renting and buying cost. Prices move monthly: operators override them.
//
// Rows of catalog/prices.yaml.
#pragma once

#include <optional>
#include <string>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

/// For one accelerator.
struct AcceleratorPrice {
  std::string accelerator;
  std::optional<DollarsPerHour> spot;
  std::optional<DollarsPerHour> on_demand_low;
  std::optional<DollarsPerHour> on_demand;
  std::optional<DollarsPerHour> on_demand_high;
  std::optional<DollarsPerHour> hyperscaler;
  std::optional<Dollars> unit_capex;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<AcceleratorPrice> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("accelerator", p.accelerator);
  visitor.optional("spot_usd_per_hour", p.spot);
  visitor.optional("ondemand_low_usd_per_hour", p.on_demand_low);
  visitor.optional("ondemand_typical_usd_per_hour", p.on_demand);
  visitor.optional("ondemand_high_usd_per_hour", p.on_demand_high);
  visitor.optional("hyperscaler_usd_per_hour", p.hyperscaler);
  visitor.optional("unit_capex_usd", p.unit_capex);
  describe_inline(visitor, p.provenance);
}

/// For one node type, or one whole rack of a system.
struct ServerCapex {
  std::string node;
  Dollars low;
  Dollars typical;
  Dollars high;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ServerCapex> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("node", c.node);
  visitor.required("low", c.low);
  visitor.required("typical", c.typical);
  visitor.required("high", c.high);
  describe_inline(visitor, c.provenance);
}

}  // namespace orrery

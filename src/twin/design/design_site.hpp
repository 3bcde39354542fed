// twin/design/design_site.hpp - a designed fleet with its surroundings: racks, network, storage,
// power, cooling, and the bill of materials.
//
// Built by twin/design/design.hpp from counted nodes; the fleet builder judges it. Values; the
// catalog must outlive them. Cost: two builds of the topology.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/spec/spec.hpp"
#include "fleet/spec/summary.hpp"
#include "twin/design/design_candidate.hpp"
#include "twin/design/design_goodput.hpp"

namespace orrery {

/// Equal nodes of a design.
struct DesignGroup {
  const DesignCandidate* candidate = nullptr;
  std::uint32_t nodes = 0;
  std::uint32_t spares = 0;  ///< of them
  double missing = 0;        ///< mean number broken beyond the spares
  NodeFaults faults;

  [[nodiscard]] double accelerators() const { return nodes * candidate->node_accelerators(); }
};

struct SiteQuestion {
  const DesignSpec& spec;
  const std::vector<DesignGroup>& groups;
  const StorageChoice& storage;
};

struct DesignedSite {
  FleetSpec fleet;
  FleetSummary summary;
  Watts power_max;      ///< at the meter, by the ratings of nodes, switches, storage
  Watts power_typical;  ///< at the meter, in training
  double pue = 1;
  std::optional<DollarsPerJoule> electricity;
  std::optional<Dollars> capex;  ///< none: a price is missing
  std::vector<std::string> assumptions;
};

/// Errors: what the fleet builder refuses, including an exceeded power limit of the site.
[[nodiscard]] Result<DesignedSite> build_site(const FactsView& facts, const SiteQuestion& of);

/// Builds the site without its limit on power, to see how much it would draw.
[[nodiscard]] Result<DesignedSite> probe_site(const FactsView& facts, const SiteQuestion& of);

/// One line of a bill of materials. An item without a price is counted, and no price is invented.
struct BillRow {
  std::string part;
  std::string what;
  double count = 0;
  std::optional<Dollars> price;  ///< of one
  std::optional<Dollars> total;
  std::optional<Watts> power;  ///< of all, at their inlets
  std::string basis;           ///< of the price, or where it is counted
};

template <class Visitor, SameStruct<BillRow> Self>
void describe(Visitor& visitor, Self& b) {
  visitor.required("part", b.part);
  visitor.required("what", b.what);
  visitor.required("count", b.count);
  visitor.optional("price_usd", b.price);
  visitor.optional("total_usd", b.total);
  visitor.optional("power_watts", b.power);
  visitor.required("basis", b.basis);
}

[[nodiscard]] std::vector<BillRow> bill_of(const FactsView& facts, const SiteQuestion& of,
                                           const DesignedSite& site);

/// Nodes that fit into the rack these nodes are put into.
[[nodiscard]] double rack_nodes(const Catalog& catalog, const DesignCandidate& candidate);

/// Nodes that are bought together: those of a scale-up domain that fills a rack, else one.
[[nodiscard]] std::uint32_t unit_nodes(const DesignCandidate& candidate);

}  // namespace orrery

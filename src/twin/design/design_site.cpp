#include "twin/design/design_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "fleet/rack_cooling.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "fleet/spec/builder.hpp"

namespace orrery {
namespace {

/// A limit above the draw of any site, so that the builder's sums can be read.
constexpr Watts kNoLimit{1e12};

enum class Limit : std::uint8_t { kHeld, kNone };

std::optional<Watts> rating_of(const Catalog& catalog, std::string_view level) {
  const PowerLevel* row = catalog.find<PowerLevel>(level);
  if (row == nullptr || row->typical.empty()) return std::nullopt;
  return row->typical.front() * row->breaker_derate_fraction.value_or(1);
}

/// Units of the catalog's rating, or of the load where that is less, with one to spare.
std::optional<RedundantSupply> supply_for(const Catalog& catalog, std::string_view level,
                                          Watts load) {
  const std::optional<Watts> rating = rating_of(catalog, level);
  if (!rating) return std::nullopt;
  const Watts unit = std::min(*rating, load);
  return RedundantSupply{.name = std::string(level),
                         .capacity = unit,
                         .units = static_cast<int>(std::ceil(load / unit * (1 - 1e-9))) + 1,
                         .redundancy = Redundancy::kN1};
}

class SiteBuilder {
 public:
  SiteBuilder(const FactsView& facts, const SiteQuestion& of) : facts_(facts), of_(of) {}

  Result<DesignedSite> build(Limit limit) {
    if (Status made = add_nodes(); !made) return forward_error(made);
    add_surroundings(limit);
    Result<Topology> topology = build_topology(site_.fleet, facts_.catalog);
    if (!topology) return forward_error(topology);
    site_.summary = summarize(*topology);
    for (const PowerDomain& domain : topology->power_domains()) {
      if (domain.kind != PowerKind::kSiteCap) continue;
      site_.power_max = domain.max_power;
      site_.power_typical = domain.typical_power;
    }
    site_.pue = topology->sites().front().pue;
    site_.electricity = topology->sites().front().electricity;
    set_capex();
    return std::move(site_);
  }

 private:
  Status add_nodes() {
    AcceleratorFleetOptions options;
    for (const DesignGroup& group : of_.groups) {
      options.accelerators.push_back(
          {group.candidate->accelerator->id, static_cast<int>(group.accelerators())});
    }
    Result<AcceleratorFleet> fleet = fleet_of_accelerators(facts_.catalog, options);
    if (!fleet) return forward_error(fleet);
    site_.fleet = std::move(fleet->spec);
    site_.assumptions = std::move(fleet->assumptions);
    // Each type has a hall of its own, as a hall has one kind of row.
    std::vector<PodSpec> pods = std::move(site_.fleet.sites.front().halls.front().pods);
    std::vector<HallSpec>& halls = site_.fleet.sites.front().halls;
    halls.clear();
    for (const DesignGroup& group : of_.groups) {
      HallSpec& hall = halls.emplace_back();
      hall.name = "hall-" + group.candidate->accelerator->id;
      for (PodSpec& pod : pods) {
        const bool here = pod.racks.front().nodes.front().type == group.candidate->node->id;
        if (here) hall.pods.push_back(std::move(pod));
      }
      std::erase_if(pods, [](const PodSpec& pod) { return pod.racks.empty(); });
      add_power(group, hall);
    }
    return {};
  }

  void add_power(const DesignGroup& group, HallSpec& hall) const {
    const NodeType& node = *group.candidate->node;
    const Watts load = planned_power(node) * group.nodes;
    hall.ups = supply_for(facts_.catalog, "ups", load);
    const std::optional<Watts> row = rating_of(facts_.catalog, "row-pdu/busway");
    if (!row) return;
    Watts rack;
    for (const PodSpec& pod : hall.pods) {
      for (const RackSpec& each : pod.racks) {
        rack = std::max(rack, planned_power(node) * each.nodes.front().count);
      }
    }
    hall.rows = RowSpec{.racks = std::max(1, static_cast<int>(*row / rack)),
                        .capacity = std::max(*row, rack)};
  }

  void add_surroundings(Limit limit) {
    const DesignSite& wished = of_.spec.site;
    site_.fleet.name = of_.spec.name;
    site_.fleet.description = of_.spec.description;
    SiteSpec& site = site_.fleet.sites.front();
    site.where = wished.where;
    site.region = wished.region;
    site.electricity = wished.electricity;
    site.pue = wished.pue;
    site.power_cap = limit == Limit::kHeld ? wished.power : kNoLimit;
    if (limit == Limit::kHeld) {
      if (auto feed = supply_for(facts_.catalog, "mv-transformer", wished.power)) {
        site.feeds.push_back(*std::move(feed));
      }
    }
    site.storage.push_back({.name = "store",
                            .system = of_.storage.system->id,
                            .units = static_cast<int>(of_.storage.units)});
  }

  void set_capex() {
    const auto part = [&](std::string_view id) { return facts_.calibration.first_of({id}); };
    Dollars servers;
    for (const DesignGroup& group : of_.groups) {
      if (!group.candidate->price) return;
      servers += group.candidate->price->each * group.accelerators();
    }
    site_.capex = servers * (1 + part("money.network.fraction") + part("money.storage.fraction"));
  }

  const FactsView& facts_;
  const SiteQuestion& of_;
  DesignedSite site_;
};

class Bill {
 public:
  Bill(const FactsView& facts, const SiteQuestion& of, const DesignedSite& site)
      : facts_(facts), of_(of), site_(site) {}

  std::vector<BillRow> rows() {
    for (const DesignGroup& group : of_.groups) add_nodes(group);
    for (const FabricTotal& fabric : site_.summary.fabrics) add_fabric(fabric);
    allow("network", "allowance for switches, cables and optics", "money.network.fraction");
    add_storage();
    allow("storage", "allowance for storage", "money.storage.fraction");
    add_building();
    return std::move(rows_);
  }

 private:
  void add_nodes(const DesignGroup& group) {
    const NodeType& node = *group.candidate->node;
    const double each = group.candidate->node_accelerators();
    BillRow row{
        .part = "nodes",
        .what = fmt::format("{} ({:.0f} x {})", node.id, each, group.candidate->accelerator->id),
        .power = planned_power(node) * group.nodes};
    row.count = group.nodes;
    row.basis = "no price in the catalog";
    if (group.candidate->price) {
      row.price = group.candidate->price->each * each;
      row.total = *row.price * row.count;
      row.basis = group.candidate->price->basis;
      servers_ += *row.total;
    } else {
      complete_ = false;
    }
    if (!node.max_power) row.basis += "; power is the maximum of an assumed range";
    rows_.push_back(std::move(row));
    rows_.push_back({.part = "spares",
                     .what = fmt::format("spare nodes among the {} above", node.id),
                     .count = static_cast<double>(group.spares),
                     .basis = "included in the nodes above"});
  }

  void add_counted(std::string part, std::string what, double count, std::optional<Watts> power) {
    rows_.push_back({.part = std::move(part),
                     .what = std::move(what),
                     .count = count,
                     .power = power,
                     .basis = "included in the allowance below"});
  }

  void add_fabric(const FabricTotal& fabric) {
    const ScaleOutFabric* type = facts_.catalog.find<ScaleOutFabric>(fabric.type);
    const auto add = [&](const char* tier, std::uint32_t count) {
      if (count == 0) return;
      std::optional<Watts> power;
      if (type != nullptr && type->switch_power) power = *type->switch_power * count;
      add_counted("switches", fmt::format("{} of {}", tier, fabric.type), count, power);
    };
    add("leaves", fabric.leaves);
    add("spines", fabric.spines);
    add("cores", fabric.cores);
    const std::uint64_t above = fabric.leaf_spine_cables + fabric.spine_core_cables;
    add_counted("cables", "node to leaf, with both ends", static_cast<double>(fabric.node_cables),
                {});
    if (above == 0) return;
    add_counted("cables", "between switches, with both ends", static_cast<double>(above), {});
  }

  void add_storage() {
    const StorageSystem& system = *of_.storage.system;
    std::optional<Watts> power;
    if (system.power) power = *system.power * of_.storage.units;
    add_counted("storage", fmt::format("{} ({})", system.id, system.unit), of_.storage.units,
                power);
  }

  void allow(const std::string& part, const std::string& what, std::string_view constant) {
    const double fraction = facts_.calibration.first_of({constant});
    BillRow row{.part = part, .what = what, .count = 1};
    row.basis = fmt::format("{:.1f} % of the nodes ({})", fraction * 100, constant);
    if (complete_) row.total = row.price = servers_ * fraction;
    rows_.push_back(std::move(row));
  }

  void add_supply(const std::string& part, const RedundantSupply& supply) {
    rows_.push_back({.part = part,
                     .what = fmt::format("{} of {}, {}", supply.name, print(supply.capacity),
                                         word_of(supply.redundancy)),
                     .count = static_cast<double>(supply.units),
                     .basis = "no price in the catalog: part of the building"});
  }

  void add_building() {
    const SiteSpec& site = site_.fleet.sites.front();
    for (const RedundantSupply& feed : site.feeds) add_supply("power", feed);
    Watts heat;
    for (const HallSpec& hall : site.halls) {
      if (hall.ups) add_supply("power", *hall.ups);
      if (!hall.rows) continue;
      double racks = 0;
      for (const PodSpec& pod : hall.pods) {
        for (const RackSpec& rack : pod.racks) racks += double{1} * rack.count * pod.count;
      }
      const NodeGroupSpec& first = hall.pods.front().racks.front().nodes.front();
      rows_.push_back({.part = "racks",
                       .what = fmt::format("racks of up to {} {}", first.count, first.type),
                       .count = racks,
                       .basis = "no price in the catalog"});
      rows_.push_back({.part = "power",
                       .what = fmt::format("rows of {} racks at {}", hall.rows->racks,
                                           print(hall.rows->capacity)),
                       .count = std::ceil(racks / hall.rows->racks),
                       .basis = "no price in the catalog: part of the building"});
    }
    for (const BillRow& row : rows_) heat += row.power.value_or(Watts(0));
    const RackSpec& rack = site.halls.front().pods.front().racks.front();
    rows_.push_back({.part = "cooling",
                     .what = fmt::format("cooling for {} of heat, {}", print(heat),
                                         rack.cooling.value_or("as usual")),
                     .count = 1,
                     .power = site_.power_max - site_.power_max / site_.pue,
                     .basis = fmt::format(
                         "PUE {:.2f}; no price in the catalog: part of the building", site_.pue)});
  }

  const FactsView& facts_;
  const SiteQuestion& of_;
  const DesignedSite& site_;
  std::vector<BillRow> rows_;
  Dollars servers_;
  bool complete_ = true;
};

}  // namespace

double rack_nodes(const Catalog& catalog, const DesignCandidate& candidate) {
  constexpr int kServers = 4;
  constexpr int kAccelerators = 32;
  const NodeType& node = *candidate.node;
  const int servers = std::max(kServers, kAccelerators / node.accelerators_per_node);
  const int domain = static_cast<int>(unit_nodes(candidate));
  return rack_nodes_max(catalog, node, domain > 1 ? domain : servers);
}

std::uint32_t unit_nodes(const DesignCandidate& candidate) {
  const NodeType& node = *candidate.node;
  const bool torus = candidate.accelerator->scale_up.topology.starts_with("torus");
  if (torus || node.scale_up_domain_accelerators <= node.accelerators_per_node) return 1;
  return static_cast<std::uint32_t>(node.scale_up_domain_accelerators / node.accelerators_per_node);
}

Result<DesignedSite> build_site(const FactsView& facts, const SiteQuestion& of) {
  return SiteBuilder(facts, of).build(Limit::kHeld);
}

Result<DesignedSite> probe_site(const FactsView& facts, const SiteQuestion& of) {
  return SiteBuilder(facts, of).build(Limit::kNone);
}

std::vector<BillRow> bill_of(const FactsView& facts, const SiteQuestion& of,
                             const DesignedSite& site) {
  return Bill(facts, of, site).rows();
}

}  // namespace orrery

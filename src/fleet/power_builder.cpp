// The power and cooling half of TopologyBuilder.
#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "fleet/node_power.hpp"
#include "fleet/rack_cooling.hpp"
#include "fleet/spec/builder.hpp"

namespace orrery {
namespace {

// Default classes for air-cooled and for liquid-cooled nodes.
constexpr std::string_view kDefaultAirClass = "air-containment-modern";
constexpr std::string_view kDefaultLiquidClass = "direct-liquid-hybrid";

// Returns a hint that names the class that would hold the load.
std::string class_that_holds(const Catalog& catalog, const NodeType& type, Watts load) {
  const CoolingClass* least = least_cooling(catalog, type, load);
  if (least == nullptr)
    return "no cooling class for such nodes holds it; put some of them in another rack";
  return fmt::format("the least that would hold it is {} ({})", least->id, print(least->max_rack));
}

std::string supply_text(const RedundantSupply& supply) {
  return fmt::format("{} x {}, {}", supply.units, print(supply.capacity),
                     word_of(supply.redundancy));
}

double middle(const std::vector<double>& range) { return (range.front() + range.back()) / 2; }

}  // namespace

Status TopologyBuilder::plan_rack(const RackSpec& rack, std::span<const std::uint32_t> groups) {
  RackPlan plan{&rack, hall_, nullptr, nullptr, {}, {}, {}};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (rack.nodes[g].count == 0) continue;
    const NodeGroup& group = topology_.groups_[groups[g]];
    if (plan.type == nullptr) plan.type = &topology_.node_type(group);
    plan.max_power += *group.max_power * rack.nodes[g].count;
    plan.typical_power += *group.typical_power * rack.nodes[g].count;
    plan.idle_power += idle_power(group, topology_.node_type(group)) * rack.nodes[g].count;
  }
  Result<const CoolingClass*> cooling = cooling_of(rack, *plan.type);
  if (!cooling) return forward_error(cooling);
  plan.cooling = *cooling;
  if (Status checked = check_rack(plan); !checked) return checked;
  racks_.push_back(plan);
  return {};
}

Result<const CoolingClass*> TopologyBuilder::cooling_of(const RackSpec& rack,
                                                        const NodeType& first_type) const {
  if (rack.cooling) return catalog_.require<CoolingClass>(*rack.cooling, rack.where);
  return catalog_.require<CoolingClass>(
      first_type.cooling == "air" ? kDefaultAirClass : kDefaultLiquidClass, rack.where);
}

Status TopologyBuilder::check_rack(const RackPlan& plan) const {
  const DomainId local = DomainId::at(racks_.size());
  if (plan.max_power <= plan.cooling->max_rack) return {};
  const Domain& rack = levels_[static_cast<std::size_t>(Level::kRack)][local.value()];
  const Domain& pod = levels_[static_cast<std::size_t>(Level::kPod)][rack.parent.value()];
  const auto shown = [&](const Domain& domain) {
    const std::string& name = topology_.names_[domain.name];
    return domain.ordinal == 0 ? name : fmt::format("{}-{}", name, domain.ordinal);
  };
  return input_error(
      plan.spec->where,
      fmt::format("rack {}/{}/{} draws up to {}, more than the limit of its cooling class {} of "
                  "{}; {}",
                  plan.hall->name, shown(pod), shown(rack), print(plan.max_power), plan.cooling->id,
                  print(plan.cooling->max_rack),
                  class_that_holds(catalog_, *plan.type, plan.max_power)));
}

PowerDomainId TopologyBuilder::add_power(PowerDomain domain) {
  topology_.power_.push_back(std::move(domain));
  return PowerDomainId::at(topology_.power_.size() - 1);
}

Status TopologyBuilder::build_power() {
  topology_.rack_power_.resize(racks_.size());
  for (std::size_t i = 0; i < spec_.sites.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    if (Status set = set_site_facts(spec_.sites[i], index); !set) return set;
    if (Status built = build_site_power(spec_.sites[i], index); !built) return built;
  }
  return {};
}

// Switches and storage are in no rack of the spec, but the site's feeds supply them, too.
void TopologyBuilder::add_shared_power() {
  for (const SiteFacts& site : topology_.sites_) {
    const Watts shared = shared_power(topology_, site) * site.pue;
    for (PowerDomain& domain : topology_.power_) {
      const bool above = domain.kind == PowerKind::kSiteCap || domain.kind == PowerKind::kFeeds;
      if (!above || !domain.name.starts_with(site.spec.name + "/")) continue;
      domain.max_power += shared;
      domain.typical_power += shared;
    }
  }
}

Status TopologyBuilder::set_site_facts(const SiteSpec& site, std::uint32_t site_index) {
  SiteFacts facts;
  facts.domain = DomainId(first_of_level_[static_cast<std::size_t>(Level::kSite)] + site_index);
  facts.spec = site;
  facts.spec.halls.clear();
  for (StorageSpec& storage : facts.spec.storage) {
    Result<const StorageSystem*> system =
        catalog_.require<StorageSystem>(storage.system, storage.where);
    if (!system) return forward_error(system);
    storage.system = (*system)->id;
  }
  facts.carbon = site.carbon;
  facts.electricity = site.electricity;
  if (site.region) {
    const auto* carbon = catalog_.find<GridCarbon>(*site.region);
    const auto* price = catalog_.find<ElectricityPrice>(*site.region);
    if (carbon == nullptr && price == nullptr) {
      Result<const GridCarbon*> known = catalog_.require<GridCarbon>(*site.region, site.where);
      return forward_error(known);
    }
    if (carbon != nullptr && !facts.carbon) facts.carbon = carbon->value.quantity;
    if (price != nullptr && !facts.electricity) facts.electricity = price->typical.quantity;
  }
  Watts power;
  Watts weighted;
  for (const RackPlan& rack : racks_) {
    const bool here = std::any_of(site.halls.begin(), site.halls.end(),
                                  [&](const HallSpec& hall) { return &hall == rack.hall; });
    if (!here) continue;
    power += rack.typical_power;
    weighted += rack.typical_power * middle(rack.cooling->pue);
  }
  facts.pue = site.pue.value_or(power > Watts(0) ? weighted / power : 1.0);
  facts.pue_assumed = !site.pue.has_value();
  topology_.sites_.push_back(std::move(facts));
  return {};
}

Status TopologyBuilder::build_site_power(const SiteSpec& site, std::uint32_t site_index) {
  PowerDomainId above;
  if (site.power_cap) {
    above = add_power({.kind = PowerKind::kSiteCap,
                       .name = site.name + "/power-cap",
                       .where = site.where,
                       .limit = site.power_cap});
  }
  if (!site.feeds.empty()) {
    Watts usable;
    std::string supply;
    for (const RedundantSupply& feed : site.feeds) {
      usable += feed.usable();
      supply += (supply.empty() ? "" : " + ") + supply_text(feed);
    }
    above = add_power({.kind = PowerKind::kFeeds,
                       .name = site.name + "/feeds",
                       .supply = supply,
                       .where = site.feeds.front().where,
                       .parent = above,
                       .limit = usable});
  }
  for (const HallSpec& hall : site.halls) {
    if (Status built = build_hall_power(hall, site.name + "/" + hall.name, above); !built) {
      return built;
    }
  }
  // Everything above the UPS carries the cooling too.
  for (PowerDomain& domain : topology_.power_) {
    const bool facility = domain.kind == PowerKind::kSiteCap || domain.kind == PowerKind::kFeeds;
    if (!facility || !domain.name.starts_with(site.name + "/")) continue;
    domain.max_power = domain.max_power * topology_.sites_[site_index].pue;
    domain.typical_power = domain.typical_power * topology_.sites_[site_index].pue;
  }
  return {};
}

Status TopologyBuilder::build_hall_power(const HallSpec& hall, const std::string& path,
                                         PowerDomainId above) {
  if (hall.ups) {
    above = add_power({.kind = PowerKind::kUps,
                       .name = path + "/ups",
                       .supply = supply_text(*hall.ups),
                       .where = hall.ups->where,
                       .parent = above,
                       .limit = hall.ups->usable()});
  }
  std::vector<PowerDomainId> loops;
  loops.reserve(hall.cooling_loops.size());
  for (const RedundantSupply& loop : hall.cooling_loops) {
    loops.push_back(add_power({.kind = PowerKind::kCoolingLoop,
                               .name = path + "/" + loop.name,
                               .supply = supply_text(loop),
                               .where = loop.where,
                               .limit = loop.usable()}));
  }
  PowerDomainId row = above;
  int in_hall = 0;
  for (std::size_t i = 0; i < racks_.size(); ++i) {
    if (racks_[i].hall != &hall) continue;
    if (hall.rows && in_hall % hall.rows->racks == 0) {
      row = add_power({.kind = PowerKind::kRow,
                       .name = fmt::format("{}/row-{}", path, in_hall / hall.rows->racks + 1),
                       .where = hall.rows->where,
                       .parent = above,
                       .limit = hall.rows->capacity});
    }
    ++in_hall;
    Result<PowerDomainId> loop = loop_of(racks_[i], hall, loops);
    if (!loop) return forward_error(loop);
    add_rack_power(i, row, *loop);
  }
  return {};
}

Result<PowerDomainId> TopologyBuilder::loop_of(const RackPlan& rack, const HallSpec& hall,
                                               std::span<const PowerDomainId> loops) const {
  if (!rack.spec->loop) {
    if (loops.empty()) return PowerDomainId();
    if (loops.size() == 1) return loops.front();
    return input_error(rack.spec->where,
                       fmt::format("the hall \"{}\" has {} cooling loops; say which takes the "
                                   "rack's heat with loop:",
                                   hall.name, loops.size()));
  }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (hall.cooling_loops[i].name == *rack.spec->loop) return loops[i];
  }
  return input_error(rack.spec->where, fmt::format("the hall \"{}\" has no cooling loop \"{}\"",
                                                   hall.name, *rack.spec->loop));
}

// Adds a rack's domain, and its power to all domains above it.
void TopologyBuilder::add_rack_power(std::size_t rack, PowerDomainId above, PowerDomainId loop) {
  const RackPlan& plan = racks_[rack];
  PowerDomain domain{.kind = PowerKind::kRack,
                     .name = "",
                     .where = plan.spec->where,
                     .parent = above,
                     .loop = loop};
  domain.domain = DomainId(topology_.first_rack_.value() + static_cast<std::uint32_t>(rack));
  domain.limit = plan.cooling->max_rack;
  if (plan.spec->power_limit) domain.limit = std::min(*domain.limit, *plan.spec->power_limit);
  const auto load = [&](PowerDomain& to) {
    to.max_power += plan.max_power;
    to.typical_power += plan.typical_power;
  };
  load(domain);
  for (PowerDomainId at = above; at.valid(); at = topology_.power(at).parent) {
    load(topology_.power_[at.value()]);
  }
  if (loop.valid()) load(topology_.power_[loop.value()]);
  topology_.rack_power_[rack] = add_power(std::move(domain));
}

// Returns the idle load of every domain: idle nodes, switches and storage.
std::vector<Watts> TopologyBuilder::idle_loads() const {
  std::vector<Watts> idle;
  std::vector<double> pue;
  for (const PowerDomain& domain : topology_.power_) {
    idle.push_back(domain.typical_power);
    pue.push_back(1);
    if (domain.kind != PowerKind::kSiteCap && domain.kind != PowerKind::kFeeds) continue;
    for (const SiteFacts& site : topology_.sites_) {
      if (domain.name.starts_with(site.spec.name + "/")) pue.back() = site.pue;
    }
  }
  for (std::size_t i = 0; i < racks_.size(); ++i) {
    const Watts rests = racks_[i].typical_power - racks_[i].idle_power;
    const PowerDomainId own = topology_.rack_power_[i];
    for (PowerDomainId at = own; at.valid(); at = topology_.power(at).parent) {
      idle[at.value()] = idle[at.value()] - rests * pue[at.value()];
    }
    const PowerDomainId loop = topology_.power(own).loop;
    if (loop.valid()) idle[loop.value()] = idle[loop.value()] - rests;
  }
  return idle;
}

// A domain may carry less than all its nodes draw in training: clocks and starts keep it under its
// limit. A domain whose idle nodes alone exceed its limit is a mistake.
Status TopologyBuilder::check_power_limits() const {
  constexpr double kRounding = 1 + 1e-9;
  const std::vector<Watts> idle = idle_loads();
  for (std::size_t i = 0; i < idle.size(); ++i) {
    const PowerDomain& domain = topology_.power_[i];
    if (!domain.limit || idle[i] <= *domain.limit * kRounding) continue;
    return input_error(
        domain.where,
        fmt::format("{} ({}) carries {} while nothing runs, more than its {}; expected at least "
                    "that, and {} for all of it to train at full clocks",
                    topology_.power_name(PowerDomainId::at(i)), word_of(domain.kind),
                    print(idle[i]), print(*domain.limit), print(domain.typical_power)));
  }
  return {};
}

}  // namespace orrery

#include "scheduler/price/fleet_costs.hpp"

#include <algorithm>

#include "planner/fleet_machines.hpp"

namespace orrery {
namespace {

void add_once(std::vector<std::string>& all, const std::string& text) {
  if (!text.empty() && std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

DeviceCosts costs_of(const Economics& economics) {
  DeviceCosts costs;
  if (economics.price.value) costs.hire = economics.price.value->hire;
  costs.owned = economics.owned;
  costs.power = economics.power.value;
  costs.pue = economics.site.value->pue;
  costs.electricity = economics.site.value->electricity;
  costs.carbon = economics.site.value->carbon;
  return costs;
}

}  // namespace

std::optional<Watts> DeviceCosts::idle() const {
  if (!power) return std::nullopt;
  return power->idle + power->rest_idle;
}

std::optional<Watts> DeviceCosts::training() const {
  if (!power) return std::nullopt;
  return power->rest_anchor + power->rest_training;
}

DollarsPerSecond DeviceCosts::electricity_beside(Watts draw, DollarsPerJoule price) const {
  return owned ? metered(draw) * price : DollarsPerSecond();
}

std::optional<DollarsPerSecond> DeviceCosts::price(Watts draw) const {
  if (!hire) return hire;
  return *hire + electricity_beside(draw, electricity);
}

const DeviceCosts* FleetCosts::Entry::find(NodeOwnership ownership) const {
  const auto& own = costs[static_cast<std::size_t>(ownership)];
  return own ? &*own : nullptr;
}

Result<FleetCosts> FleetCosts::make(const PlannerFacts& facts, const Topology& topology,
                                    const EconomicsOptions& stated) {
  FleetCosts costs;
  costs.first_site_ = topology.sites().front().domain;
  costs.types_ = topology.type_count();
  costs.table_.resize(topology.sites().size() * costs.types_);
  for (FleetPool& pool : fleet_pools(topology, stated)) {
    const std::uint64_t owned = stated.basis ? 0 : pool.owned;
    pool.economics.basis = stated.basis;
    if (pool.accelerators > owned) {
      FleetPool rented = pool;
      rented.accelerators = pool.accelerators - owned;
      if (Status added = costs.add(facts, rented, NodeOwnership::kRented); !added) {
        return forward_error(added);
      }
    }
    if (owned == 0) continue;
    pool.economics.basis = PriceBasis::kOwned;
    pool.accelerators = owned;
    if (Status added = costs.add(facts, pool, NodeOwnership::kOwned); !added) {
      return forward_error(added);
    }
  }
  return costs;
}

Status FleetCosts::add(const PlannerFacts& facts, const FleetPool& pool, NodeOwnership ownership) {
  Entry& entry = table_[index(pool.type, pool.site)];
  const auto which = static_cast<std::size_t>(ownership);
  if (pool.accelerators <= entry.devices[which]) return {};
  entry.devices[which] = pool.accelerators;
  Result<Economics> economics = running_costs_of(facts, *pool.node, pool.economics);
  if (!economics) return forward_error(economics);
  entry.costs[which] = costs_of(*economics);
  if (entry.costs[1 - which]) uniform_ = false;
  add_once(missing_, economics->price.missing);
  add_once(missing_, economics->power.missing);
  for (const std::string& text : economics->assumptions) add_once(assumptions_, text);
  return {};
}

const DeviceCosts* FleetCosts::find(FleetTypeId type, DomainId site) const {
  const std::size_t i = index(type, site);
  if (i >= table_.size()) return nullptr;
  const Entry& entry = table_[i];
  const bool owned = entry.devices[1] > entry.devices[0];
  return entry.find(owned ? NodeOwnership::kOwned : NodeOwnership::kRented);
}

const DeviceCosts* FleetCosts::at(const Topology& topology, NodeId node) const {
  const NodeGroup& group = topology.group(node);
  const DomainId site = topology.ancestor(topology.place(node).rack, Level::kSite);
  const std::size_t i = index(group.type, site);
  if (i >= table_.size()) return nullptr;
  const DeviceCosts* own = table_[i].find(group.ownership);
  return own != nullptr ? own : find(group.type, site);  // no own costs where the operator stated
                                                         // the basis
}

}  // namespace orrery

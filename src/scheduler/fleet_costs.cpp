#include "scheduler/fleet_costs.hpp"

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

std::optional<DollarsPerSecond> DeviceCosts::price(Watts draw) const {
  if (!hire || !owned) return hire;
  return *hire + draw * pue * electricity;
}

Result<FleetCosts> FleetCosts::make(const PlannerFacts& facts, const Topology& topology,
                                    const EconomicsOptions& stated) {
  FleetCosts costs;
  costs.first_site_ = topology.sites().front().domain;
  costs.types_ = topology.type_count();
  costs.table_.resize(topology.sites().size() * costs.types_);
  std::vector<std::uint64_t> devices(costs.table_.size());
  for (const FleetPool& pool : fleet_pools(topology, stated)) {
    const std::size_t at =
        (pool.site.value() - costs.first_site_.value()) * costs.types_ + pool.type.value();
    if (pool.accelerators <= devices[at]) continue;
    devices[at] = pool.accelerators;
    Result<Economics> economics = running_costs_of(facts, *pool.node, pool.economics);
    if (!economics) return forward_error(economics);
    costs.table_[at] = costs_of(*economics);
    add_once(costs.missing_, economics->price.missing);
    add_once(costs.missing_, economics->power.missing);
    for (const std::string& text : economics->assumptions) add_once(costs.assumptions_, text);
  }
  return costs;
}

const DeviceCosts* FleetCosts::find(FleetTypeId type, DomainId site) const {
  const std::size_t at = (site.value() - first_site_.value()) * types_ + type.value();
  if (at >= table_.size() || !table_[at]) return nullptr;
  return &*table_[at];
}

}  // namespace orrery

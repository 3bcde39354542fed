#include "twin/outages/shared_outages.hpp"

#include <algorithm>
#include <utility>

#include "twin/outages/fault_scope.hpp"

namespace orrery {
namespace {

/// Capacity left of a supply without redundancy while one of its units is out (assumed).
constexpr double kSupplyLeft = 0.5;

/// Whether the domain's limit is what it carries with a unit down.
bool redundant(const PowerDomain& domain) {
  return domain.supply.find("N+") != std::string::npos ||
         domain.supply.find("2N") != std::string::npos;
}

}  // namespace

void SharedOutages::plan(const WorldEvent& event) {
  const Fault& fault = parts_.faults[event.index];
  WorldEvent known = event;
  known.kind = WorldEventKind::kKnown;
  parts_.agenda.push(fault.known_at(), EventRank::kThen, known);
  if (!fault.is_over_some_day()) return;
  WorldEvent over = event;
  over.kind = WorldEventKind::kOver;
  parts_.agenda.push(fault.over_at(), EventRank::kThen, over);
}

void SharedOutages::strike_supply(PowerDomainId domain, std::uint32_t index) {
  parts_.faults.affect(domain, index);
  plan({.index = index});
}

void SharedOutages::strike_links(std::span<const LinkId> links, std::uint32_t index,
                                 const State& state) {
  const Fault& fault = parts_.faults[index];
  std::vector<NodeId> cut;
  for (const LinkId link : links) {
    const NodeId node = node_of_port(parts_.topology, link);
    const bool there = node.valid() && !parts_.faults.cut_off_until(node);
    parts_.faults.affect(link, index);
    if (there && parts_.faults.cut_off_until(node)) cut.push_back(node);
    plan({.index = index, .link = link});
  }
  for (const NodeId node : cut) {
    for (const JobId id : state.jobs_on(node)) {
      if (!parts_.runs[id].progress.computes() || !spans_nodes(state.running(id))) continue;
      parts_.faults.count_job(index);
      parts_.runs.halt(id, fault.at);
    }
    parts_.agenda.push(fault.known_at(), EventRank::kThen,
                       {.kind = WorldEventKind::kCut, .index = index, .node = node});
  }
  if (!cut.empty()) parts_.runs.share(state, fault.at);
}

bool SharedOutages::concerns(const WorldEvent& event) const {
  return event.link.valid() ||
         std::holds_alternative<PowerDomainId>(parts_.faults[event.index].scope);
}

std::optional<InputKind> SharedOutages::detect(const WorldEvent& event, Instant now) {
  if (event.link.valid()) return link_observed(event.link, now);
  const auto domain = std::get<PowerDomainId>(parts_.faults[event.index].scope);
  const SupplyObserved seen = supply_observed(domain, now);
  if (!seen.supply) return std::nullopt;
  return seen;
}

InputKind SharedOutages::end(const WorldEvent& event, Instant now) {
  ActiveFaults& faults = parts_.faults;
  if (const auto* domain = std::get_if<PowerDomainId>(&faults[event.index].scope)) {
    faults.lift(*domain, event.index);
    return supply_observed(*domain, now);
  }
  const NodeId node = node_of_port(parts_.topology, event.link);
  const bool away = node.valid() && faults.cut_off_until(node);
  faults.lift(event.link, event.index);
  if (away && !faults.cut_off_until(node)) {
    parts_.agenda.push(now, EventRank::kThen, {.kind = WorldEventKind::kReached, .node = node});
  }
  return link_observed(event.link, now);
}

InputKind SharedOutages::link_observed(LinkId link, Instant now) {
  if (links_reported_.empty()) {
    parts_.agenda.push(now, EventRank::kSettle, {.kind = WorldEventKind::kLinks});
  }
  links_reported_.push_back(link);
  return LinkObserved{link, {parts_.faults.known_health(link, now), 0}};
}

void SharedOutages::apply_links(const State& state, Instant now) {
  parts_.runs.links_changed(std::exchange(links_reported_, {}), state, now);
}

SupplyObserved SharedOutages::supply_observed(PowerDomainId domain, Instant now) const {
  const PowerDomain& supply = parts_.topology.power_domains()[domain.value()];
  std::optional<Watts> left;
  if (supply.limit && !redundant(supply) && parts_.faults.known_out(domain, now)) {
    left = *supply.limit * kSupplyLeft;
  }
  return {domain, left};
}

// Control learns of all cut-off nodes before the first job ends, or that job would restart on the
// next of them.
std::optional<InputKind> SharedOutages::cut(const WorldEvent& event, Instant now) {
  parts_.agenda.push(now, EventRank::kSettle,
                     {.kind = WorldEventKind::kParted, .index = event.index, .node = event.node});
  const bool heard = parts_.facts.is_there(event.node, now) && !parts_.silent.is_silent(event.node);
  if (!heard || !parts_.faults.cut_off_until(event.node)) return std::nullopt;
  return NodeFault{event.node, FaultLayer::kNetwork, evidence_of(parts_.faults[event.index]), true,
                   false};
}

std::optional<InputKind> SharedOutages::part_jobs(const WorldEvent& event, const State& state,
                                                  Instant now) {
  for (const JobId id : state.jobs_on(event.node)) {
    const RunProgress& run = parts_.runs[id].progress;
    const RunningJob& placed = state.running(id);
    const bool ends =
        state.job(id).phase != JobPhase::kStopping && spans_nodes(placed) &&
        (run.halted() || (!run.up() && parts_.faults.stands_until(placed, now) > now));
    if (!ends) continue;
    parts_.agenda.push(now, EventRank::kSettle, event);  // then the next job
    const std::string evidence = evidence_of(parts_.faults[event.index]);
    return parts_.runs.end_lost(id, {FaultLayer::kNetwork, event.node, evidence}, now);
  }
  return std::nullopt;
}

}  // namespace orrery

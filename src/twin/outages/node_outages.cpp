#include "twin/outages/node_outages.hpp"

#include <algorithm>

namespace orrery {
namespace {

FaultLayer layer_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kAccelerator:
    case FaultKind::kHbm:
    case FaultKind::kSram:
    case FaultKind::kSdc:
      return FaultLayer::kAccelerator;
    case FaultKind::kHost:
    case FaultKind::kSoftware:
    case FaultKind::kMaintenance:
    case FaultKind::kFailSlow:
      return FaultLayer::kHost;
    case FaultKind::kNic:
    case FaultKind::kLinkDown:
    case FaultKind::kLinkFlap:
    case FaultKind::kSwitchDown:
    case FaultKind::kNetwork:
    case FaultKind::kOptics:
      return FaultLayer::kNetwork;
    case FaultKind::kPdu:
    case FaultKind::kUps:
      return FaultLayer::kPower;
    case FaultKind::kCoolingUnit:
      return FaultLayer::kCooling;
  }
  return FaultLayer::kHost;
}

}  // namespace

void NodeOutages::strike(NodeId node, std::uint32_t index, const State& state, Instant now) {
  const Fault& fault = parts_.faults[index];
  const bool silences = silences_nodes(fault);
  if (!silences) parts_.faults.affect(node, index);
  strike_jobs(node, index, state);
  if (silences) return parts_.silent.fall_silent(node, fault);
  parts_.agenda.push(std::max(fault.known_at(), now), EventRank::kThen,
                     {.kind = WorldEventKind::kKnown, .index = index, .node = node});
  if (!halts_jobs(fault) && !takes_node(fault) && fault.is_over_some_day()) {
    parts_.agenda.push(fault.over_at(), EventRank::kThen,
                       {.kind = WorldEventKind::kOver, .index = index, .node = node});
  }
}

void NodeOutages::strike_jobs(NodeId node, std::uint32_t index, const State& state) {
  const Fault& fault = parts_.faults[index];
  for (const JobId id : state.jobs_on(node)) {
    if (!parts_.runs[id].progress.computes()) continue;
    parts_.faults.count_job(index);
    if (fault.slowdown > 1) {
      parts_.runs.slow(id, parts_.faults.slowness(state.running(id)), state, fault.at);
    } else if (fault.kind == FaultKind::kSdc) {
      parts_.runs.corrupt(id, fault.known_at(), fault.at);
    } else {
      parts_.runs.halt(id, fault.at);
    }
  }
  parts_.runs.share(state, fault.at);
}

std::optional<InputKind> NodeOutages::detect(const WorldEvent& event, const State& state) {
  const Fault& fault = parts_.faults[event.index];
  const bool out = takes_node(fault);
  if (halts_jobs(fault) && !out) parts_.faults.lift(event.node, event.index);
  // A silent node reports nothing.
  if (parts_.silent.keep_away(event.node, fault.over_at())) return std::nullopt;
  if (out && state.node(event.node).health == NodeHealth::kDrained) {
    // The operator who drained the node has it repaired.
    if (fault.is_over_some_day()) {
      parts_.agenda.push(fault.over_at(), EventRank::kThen,
                         {.kind = WorldEventKind::kOver, .index = event.index, .node = event.node});
    }
  } else if (out) {
    Duration& repair = repair_[event.node];
    repair = std::max(repair, fault.repair);
  }
  return NodeFault{event.node, layer_of(fault.kind), evidence_of(fault), out, fault.slowdown <= 1};
}

void NodeOutages::end(const WorldEvent& event, const State& state, Instant now) {
  if (!parts_.faults.lift(event.node, event.index)) return;
  for (const JobId id : state.jobs_on(event.node)) {
    const double slowdown = parts_.faults.slowness(state.running(id));
    const JobRun& run = parts_.runs[id];
    if (!run.progress.computes() || run.slowdown == slowdown) continue;
    parts_.runs.slow(id, slowdown, state, now);
  }
}

void NodeOutages::order_repair(NodeId node, Instant now) {
  const auto needs = repair_.find(node);
  const Duration time = needs == repair_.end() ? Duration() : needs->second;
  if (time == Duration::max()) {  // no spare parts
    repair_.erase(needs);
    return;
  }
  // Only the node's network is faulty, and its repair does not depend on this node.
  if (needs == repair_.end() && parts_.faults.cut_off_until(node)) return;
  parts_.agenda.push(now + time, EventRank::kThen,
                     {.kind = WorldEventKind::kRepaired, .node = node});
}

std::optional<InputKind> NodeOutages::repaired(const WorldEvent& event, Instant now) {
  if (const std::optional<Instant> back = parts_.silent.back_at(event.node)) {
    if (*back != Instant::max()) parts_.agenda.push(*back, EventRank::kThen, event);
    return std::nullopt;
  }
  if (event.kind == WorldEventKind::kRepaired) {
    repair_.erase(event.node);
    parts_.faults.lift_known(event.node, now);
  }
  const bool out = parts_.faults.awaits_repair(event.node, now) ||
                   parts_.faults.cut_off_until(event.node).has_value();
  if (out) return std::nullopt;
  return NodeRepaired{event.node};
}

}  // namespace orrery

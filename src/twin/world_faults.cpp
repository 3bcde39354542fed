// Things that break, what they do to jobs, and what control gets to know of it and when.
#include <algorithm>
#include <utility>

#include "twin/world.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kFaultRank = 1;

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

/// Of a supply without redundancy, while one of its units is out (assumed).
constexpr double kSupplyLeft = 0.5;

/// Its limit is what it carries with a unit down.
bool redundant(const PowerDomain& domain) {
  return domain.supply.find("N+") != std::string::npos ||
         domain.supply.find("2N") != std::string::npos;
}

/// Nodes that a fault strikes by itself; links and supplies strike none.
std::vector<NodeId> nodes_struck(const Topology& topology, const FaultScope& scope) {
  if (const auto* node = std::get_if<NodeId>(&scope)) return {*node};
  if (const auto* device = std::get_if<DeviceId>(&scope)) return {topology.node_of(*device)};
  std::vector<NodeId> nodes;
  if (const auto* rack = std::get_if<DomainId>(&scope)) {
    const Domain& domain = topology.domain(*rack);
    nodes.reserve(domain.nodes);
    for (std::uint32_t i = 0; i < domain.nodes; ++i) {
      nodes.push_back(NodeId(domain.first_node.value() + i));
    }
  }
  return nodes;
}

}  // namespace

std::optional<Fault> World::take_fault() {
  if (facts_.failures && !drawn_) drawn_ = facts_.failures->next(Instant::max());
  const bool scripted = scripted_ < facts_.scripted.size() &&
                        (!drawn_ || facts_.scripted[scripted_].at <= drawn_->at);
  return scripted ? facts_.scripted[scripted_++] : std::exchange(drawn_, std::nullopt);
}

void World::await_fault() {
  const std::optional<Fault> fault = take_fault();
  if (!fault) return;
  felt_.push_back({*fault, 0});
  queue_.push(fault->at, kFaultRank,
              {.kind = Kind::kFault, .index = static_cast<std::uint32_t>(felt_.size() - 1)});
}

void World::strike(std::uint32_t index, const State& state, Instant now) {
  const bool silences = silences_nodes(felt_[index].fault);
  if (silences) {  // a loss is not seen before so many heartbeats are missing
    const HeartbeatRule& beats = facts_.timing.heartbeat;
    Duration& detection = felt_[index].fault.detection;
    detection = std::max(detection, beats.until_missed(beats.lost));
  }
  const Fault fault = felt_[index].fault;
  if (std::holds_alternative<LinkId>(fault.scope) ||
      std::holds_alternative<PowerDomainId>(fault.scope)) {
    queue_.push(fault.known_at(), kFaultRank, {.kind = Kind::kKnown, .index = index});
    queue_.push(fault.over_at(), kFaultRank, {.kind = Kind::kOver, .index = index});
    return;
  }
  for (const NodeId node : nodes_struck(*topology_, fault.scope)) {
    if (!is_there(node, fault.at)) continue;
    strike_node(node, index, state);
    if (silences) {
      fall_silent(node, fault);
      continue;
    }
    queue_.push(std::max(fault.known_at(), now), kFaultRank,
                {.kind = Kind::kKnown, .index = index, .node = node});
    if (fault.slowdown > 1) {
      queue_.push(fault.over_at(), kFaultRank, {.kind = Kind::kOver, .index = index, .node = node});
    }
  }
}

void World::strike_node(NodeId node, std::uint32_t index, const State& state) {
  const Fault& fault = felt_[index].fault;
  for (const JobId id : state.jobs_on(node)) {
    Run& run = runs_[id.value()];
    if (!run.up || run.halted) continue;
    ++felt_[index].jobs;
    settle(run, fault.at);
    if (fault.slowdown > 1) {
      run.slowdown = std::max(run.slowdown, fault.slowdown);
      set_rate(run, state, id);
      schedule_end(run, id, fault.at);
    } else if (fault.kind == FaultKind::kSdc) {
      // It goes on computing what will have to be thrown away.
      if (!run.corrupt_left) run.corrupt_left = run.safe_left;
    } else {
      halt(id, fault.at);
    }
  }
  share(state, fault.at);
}

void World::halt(JobId job, Instant now) {
  Run& run = runs_[job.value()];
  leave(job, now);
  run.halted = true;
  run.halted_at = now;
  ++run.serial;
}

// Control is told of a node; what it does about the jobs there is its own.
std::optional<Input> World::known(const Event& event, Instant now) {
  const Fault& fault = felt_[event.index].fault;
  if (const auto* link = std::get_if<LinkId>(&fault.scope)) {
    const float health = fault.slowdown > 1 ? static_cast<float>(1 / fault.slowdown) : 0.0F;
    links_told_.push_back(*link);
    return Input{now, LinkObserved{*link, {health, 0}}, {}};
  }
  if (const auto* domain = std::get_if<PowerDomainId>(&fault.scope)) {
    const std::optional<Watts> limit = topology_->power_domains()[domain->value()].limit;
    if (!limit || redundant(topology_->power_domains()[domain->value()])) return std::nullopt;
    return Input{now, SupplyObserved{*domain, *limit * kSupplyLeft}, {}};
  }
  const auto silent = silent_.find(event.node);
  if (silent != silent_.end()) {  // nobody there tells of it
    silent->second.back = std::max(silent->second.back, fault.over_at());
    return std::nullopt;
  }
  const bool out = takes_node(fault);
  if (out) {
    Duration& repair = repair_[event.node];
    repair = std::max(repair, fault.repair);
  }
  return Input{
      now,
      NodeFault{event.node, layer_of(fault.kind),
                std::string(word_of_fault(fault.kind)) + " (" + std::string(fault.evidence) + ")",
                out, fault.slowdown <= 1},
      {}};
}

std::optional<Input> World::over(const Event& event, const State& state, Instant now) {
  const Fault& fault = felt_[event.index].fault;
  if (const auto* link = std::get_if<LinkId>(&fault.scope)) {
    links_told_.push_back(*link);
    return Input{now, LinkObserved{*link, {1, 0}}, {}};
  }
  if (const auto* domain = std::get_if<PowerDomainId>(&fault.scope)) {
    return Input{now, SupplyObserved{*domain, std::nullopt}, {}};
  }
  for (const JobId id : state.jobs_on(event.node)) {
    Run& run = runs_[id.value()];
    if (!run.up || run.halted || run.slowdown == 1) continue;
    settle(run, now);
    run.slowdown = 1;
    set_rate(run, state, id);
    schedule_end(run, id, now);
  }
  return std::nullopt;
}

}  // namespace orrery

// Faults, what they do to jobs, and what control learns of them and when.
#include <algorithm>
#include <utility>

#include "twin/world/world.hpp"

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

/// Nodes that a fault strikes directly; a fault of a link or a supply strikes none.
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

/// Whether the fault halts what runs there at once.
bool halts(const Fault& fault) { return fault.slowdown <= 1 && fault.kind != FaultKind::kSdc; }

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
  if (silences) {  // a loss is detected only after this many missing heartbeats
    const HeartbeatRule& beats = facts_.timing.heartbeat;
    Duration& detection = felt_[index].fault.detection;
    detection = std::max(detection, beats.until_missed(beats.lost));
  }
  const Fault fault = felt_[index].fault;
  const std::vector<LinkId> links = links_struck(fault.scope);
  if (!links.empty()) return strike_links(links, index, state);
  if (const auto* domain = std::get_if<PowerDomainId>(&fault.scope)) {
    faults_on_[*domain].push_back(index);
    queue_.push(fault.known_at(), kFaultRank, {.kind = Kind::kKnown, .index = index});
    if (fault.is_over_some_day()) {
      queue_.push(fault.over_at(), kFaultRank, {.kind = Kind::kOver, .index = index});
    }
    return;
  }
  for (const NodeId node : nodes_struck(*topology_, fault.scope)) {
    if (!is_there(node, fault.at)) continue;
    if (!silences) faults_on_[node].push_back(index);
    strike_node(node, index, state);
    if (silences) {
      fall_silent(node, fault);
      continue;
    }
    queue_.push(std::max(fault.known_at(), now), kFaultRank,
                {.kind = Kind::kKnown, .index = index, .node = node});
    if (!halts(fault) && !takes_node(fault) && fault.is_over_some_day()) {
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
      run.slowdown = slowness(state.running(id));
      set_rate(run, state, id);
      schedule_end(run, id, fault.at);
    } else if (fault.kind == FaultKind::kSdc) {
      corrupt(run, fault);
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

// The job goes on computing results that will have to be discarded.
void World::corrupt(Run& run, const Fault& fault) {
  if (run.corrupt_left) return;
  run.corrupt_left = run.safe_left;
  run.corrupt_known = fault.known_at();
}

std::span<const std::uint32_t> World::faults_on(const Part& part) const {
  const auto found = faults_on_.find(part);
  return found == faults_on_.end() ? std::span<const std::uint32_t>() : found->second;
}

bool World::lift(const Part& part, std::uint32_t index) {
  const auto found = faults_on_.find(part);
  if (found == faults_on_.end() || std::erase(found->second, index) == 0) return false;
  if (found->second.empty()) faults_on_.erase(found);
  return true;
}

void World::lift_past(NodeId node, Instant (Fault::*time)() const, Instant now) {
  const auto found = faults_on_.find(node);
  if (found == faults_on_.end()) return;
  std::erase_if(found->second,
                [&](std::uint32_t fault) { return (felt_[fault].fault.*time)() <= now; });
  if (found->second.empty()) faults_on_.erase(found);
}

std::string evidence_of(const Fault& fault) {
  return std::string(word_of_fault(fault.kind)) + " (" + std::string(fault.evidence) + ")";
}

bool spans_nodes(const RunningJob& placed) {
  const NodeId first = placed.gangs.front().allocation.ranks.front().node;
  return std::ranges::any_of(placed.gangs, [first](const PlacedGang& gang) {
    return std::ranges::any_of(gang.allocation.ranks,
                               [first](const NodeDevices& at) { return at.node != first; });
  });
}

double World::slowness(const RunningJob& placed) const {
  double most = 1;
  if (faults_on_.empty()) return most;
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      for (const std::uint32_t fault : faults_on(at.node)) {
        most = std::max(most, felt_[fault].fault.slowdown);
      }
    }
  }
  return most;
}

void World::take_on(Run& run, const RunningJob& placed) const {
  run.slowdown = slowness(placed);
  if (faults_on_.empty()) return;
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      for (const std::uint32_t fault : faults_on(at.node)) {
        if (felt_[fault].fault.kind == FaultKind::kSdc) corrupt(run, felt_[fault].fault);
      }
    }
  }
}

Instant World::stands_until(const RunningJob& placed, Instant now) const {
  Instant until = now;
  if (faults_on_.empty()) return until;
  const bool apart = spans_nodes(placed);
  for (const PlacedGang& gang : placed.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      for (const std::uint32_t fault : faults_on(at.node)) {
        if (halts(felt_[fault].fault)) until = std::max(until, felt_[fault].fault.known_at());
      }
      if (apart) until = std::max(until, cut_off_until(at.node).value_or(now));
    }
  }
  return until;
}

Input World::ends_here(JobId job, Blame blame, Instant now) {
  Run& run = runs_[job.value()];
  RanksEnded ended{job, run.attempt, ExitKind::kInfra, std::move(blame), {}, false};
  ended.progress = take_progress(run, now);
  run.told = ended.progress;
  run.up = false;
  ++run.serial;
  queue_.push(now, 0,
              {.kind = Kind::kGone, .job = job, .serial = run.serial, .attempt = run.attempt});
  return Input{now, std::move(ended), {}};
}

// Reports the fault of a node to control, which decides what to do about the jobs there.
std::optional<Input> World::known(const Event& event, const State& state, Instant now) {
  const Fault& fault = felt_[event.index].fault;
  if (event.link.valid()) return link_observed(event.link, now);
  if (const auto* domain = std::get_if<PowerDomainId>(&fault.scope)) {
    Input seen = supply_observed(*domain, now);
    if (!std::get<SupplyObserved>(seen.what).supply) return std::nullopt;
    return seen;
  }
  const bool out = takes_node(fault);
  if (halts(fault) && !out) lift(event.node, event.index);
  const auto silent = silent_.find(event.node);
  if (silent != silent_.end()) {  // a silent node reports nothing
    silent->second.back = std::max(silent->second.back, fault.over_at());
    return std::nullopt;
  }
  if (out && state.node(event.node).health == NodeHealth::kDrained) {
    // The operator who drained the node has it repaired.
    if (fault.is_over_some_day()) {
      queue_.push(fault.over_at(), kFaultRank,
                  {.kind = Kind::kOver, .index = event.index, .node = event.node});
    }
  } else if (out) {
    Duration& repair = repair_[event.node];
    repair = std::max(repair, fault.repair);
  }
  return Input{
      now,
      NodeFault{event.node, layer_of(fault.kind), evidence_of(fault), out, fault.slowdown <= 1},
      {}};
}

std::optional<Input> World::over(const Event& event, const State& state, Instant now) {
  if (const auto* domain = std::get_if<PowerDomainId>(&felt_[event.index].fault.scope)) {
    lift(*domain, event.index);
    return supply_observed(*domain, now);
  }
  if (event.link.valid()) return link_over(event, now);
  if (!lift(event.node, event.index)) return std::nullopt;
  for (const JobId id : state.jobs_on(event.node)) {
    Run& run = runs_[id.value()];
    const double slowdown = slowness(state.running(id));
    if (!run.up || run.halted || run.slowdown == slowdown) continue;
    settle(run, now);
    run.slowdown = slowdown;
    set_rate(run, state, id);
    schedule_end(run, id, now);
  }
  return std::nullopt;
}

// Repairs the known faults of the node. Repairing the node does not mend its network, nor does
// mending its network repair the node.
std::optional<Input> World::repaired(const Event& event, Instant now) {
  if (const auto silent = silent_.find(event.node); silent != silent_.end()) {
    if (silent->second.back != Instant::max()) queue_.push(silent->second.back, kFaultRank, event);
    return std::nullopt;
  }
  if (event.kind == Kind::kRepaired) {
    repair_.erase(event.node);
    lift_past(event.node, &Fault::known_at, now);
  }
  const auto waits = [&](std::uint32_t fault) {
    return takes_node(felt_[fault].fault) && felt_[fault].fault.known_at() <= now;
  };
  if (std::ranges::any_of(faults_on(event.node), waits) || cut_off_until(event.node)) {
    return std::nullopt;
  }
  return Input{now, NodeRepaired{event.node}, {}};
}

}  // namespace orrery

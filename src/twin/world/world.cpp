#include "twin/world/world.hpp"

#include <utility>

#include "base/assert.hpp"
#include "twin/outages/fault_scope.hpp"

namespace orrery {

World::World(const Topology& topology, Facts facts)
    : topology_(&topology),
      facts_(std::move(facts)),
      schedule_(std::exchange(facts_.failures, std::nullopt), std::exchange(facts_.scripted, {})),
      faults_(topology),
      runs_(topology, facts_, agenda_),
      rounds_(agenda_, runs_),
      silent_({facts_.timing, agenda_, faults_, runs_}),
      nodes_({agenda_, faults_, runs_, silent_}),
      shared_({topology, facts_, agenda_, faults_, runs_, silent_}) {
  await_fault();
}

void World::add(const TrueJob& job) {
  runs_.add(job);
  rounds_.add(job);
}

void World::carry_out(const Action& action, const State& state, Instant now) {
  if (const auto* begin = std::get_if<StartRanks>(&action)) {
    runs_.start(*begin, state, now);
  } else if (const auto* end = std::get_if<StopRanks>(&action)) {
    runs_.stop(*end, state, now);
  } else if (const auto* clock = std::get_if<ApplyClock>(&action)) {
    runs_.change_clock(*clock, state, now);
  } else if (const auto* repair = std::get_if<RepairNode>(&action)) {
    nodes_.order_repair(repair->node, now);
  }
}

void World::deliver(const Report& /*report*/, Instant /*now*/) {
  ORRERY_ASSERT(false, "the twin's world has no agents");
}

void World::advance(const State& state, Instant now) {
  ORRERY_ASSERT(now == agenda_.next(), "events of the world happen at their time");
  if (std::optional<InputKind> seen = step(state, now)) effects_.emplace_back(*std::move(seen));
}

std::vector<ExecutorEffect> World::take() { return std::exchange(effects_, {}); }

void World::send_input(InputKind what, Instant now) {
  Duration after;
  if (std::holds_alternative<Proposal>(what)) after = facts_.timing.scheduler_latency;
  if (auto* plan = std::get_if<PlanReady>(&what)) {
    plan->entry = facts_.plans(plan->key);
    after = facts_.timing.plan_search;
  }
  agenda_.push_input(now + after, EventRank::kThen, std::move(what));
}

std::optional<InputKind> World::step(const State& state, Instant now) {
  const WorldEvent event = agenda_.pop();
  switch (event.kind) {
    case WorldEventKind::kInput:
      return agenda_.take_input(event);
    case WorldEventKind::kRoundEnd:
      rounds_.end();
      return std::nullopt;
    case WorldEventKind::kFault:
      strike(event.index, state, now);
      await_fault();
      return std::nullopt;
    case WorldEventKind::kKnown:
      if (shared_.concerns(event)) return shared_.detect(event, now);
      return nodes_.detect(event, state);
    case WorldEventKind::kOver:
      if (shared_.concerns(event)) return shared_.end(event, now);
      nodes_.end(event, state, now);
      return std::nullopt;
    case WorldEventKind::kCut:
      return shared_.cut(event, now);
    case WorldEventKind::kParted:
      return shared_.part_jobs(event, state, now);
    case WorldEventKind::kLinks:
      shared_.apply_links(state, now);
      return std::nullopt;
    case WorldEventKind::kSuspect:
    case WorldEventKind::kLost:
    case WorldEventKind::kLeased:
    case WorldEventKind::kFenced:
    case WorldEventKind::kBack:
      return silent_.step(event, state, now);
    case WorldEventKind::kRepaired:
    case WorldEventKind::kReached:
      return nodes_.repaired(event, now);
    case WorldEventKind::kMoved:
      runs_.bytes_arrived(event, state, now);
      return std::nullopt;
    case WorldEventKind::kCopy:
      runs_.begin_copy(event, state, now);
      return std::nullopt;
    case WorldEventKind::kShed:
    case WorldEventKind::kUp:
    case WorldEventKind::kEnd:
    case WorldEventKind::kGone:
      break;
  }
  return step_run(event, state, now);
}

std::optional<InputKind> World::step_run(const WorldEvent& event, const State& state, Instant now) {
  if (event.serial != runs_[event.job].serial) return std::nullopt;
  if (event.kind == WorldEventKind::kShed) return silent_.report_shed(event, state);
  if (event.kind == WorldEventKind::kUp) return come_up(event, state, now);
  if (event.kind == WorldEventKind::kEnd) return runs_.end(event.job, state, now);
  return silent_.narrow(runs_.leave_devices(event, state, now), state);
}

std::optional<InputKind> World::come_up(const WorldEvent& event, const State& state, Instant now) {
  const RunningJob& placed = state.running(event.job);
  if (silent_.has_ranks_of(placed)) return std::nullopt;
  if (const Instant until = faults_.stands_until(placed, now); until > now) {
    agenda_.push(until, EventRank::kThen, event);
    return std::nullopt;
  }
  const FaultyStart faults{faults_.slowness(placed), faults_.corrupt_until(placed)};
  return runs_.come_up(event.job, faults, state, now);
}

void World::await_fault() {
  const std::optional<Fault> fault = schedule_.take_next();
  if (!fault) return;
  agenda_.push(fault->at, EventRank::kThen,
               {.kind = WorldEventKind::kFault, .index = faults_.add(*fault)});
}

void World::strike(std::uint32_t index, const State& state, Instant now) {
  if (silences_nodes(faults_[index])) {  // a loss is detected only by missing heartbeats
    const HeartbeatRule& beats = facts_.timing.heartbeat;
    faults_.delay_detection(index, beats.until_missed(beats.lost));
  }
  const Fault& fault = faults_[index];
  const std::vector<LinkId> links = links_struck(*topology_, fault.scope);
  if (!links.empty()) return shared_.strike_links(links, index, state);
  if (const auto* domain = std::get_if<PowerDomainId>(&fault.scope)) {
    return shared_.strike_supply(*domain, index);
  }
  for (const NodeId node : nodes_struck(*topology_, fault.scope)) {
    if (facts_.is_there(node, fault.at)) nodes_.strike(node, index, state, now);
  }
}

}  // namespace orrery

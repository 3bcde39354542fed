#include "twin/serving/replica_fleet.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

ReplicaFleet::ReplicaFleet(const ServiceSetup& setup, std::uint32_t units)
    : setup_(setup), units_(units) {
  for (std::size_t group = 0; group < setup.groups.size(); ++group) {
    for (std::uint32_t i = 0; i < setup.groups[group].count; ++i) {
      order(group, ModelledPhase::kReady, 0);
    }
  }
}

std::vector<ReadyReplica> ReplicaFleet::ready() const {
  std::vector<ReadyReplica> found;
  found.reserve(replicas_.size());
  for (std::uint32_t i = 0; i < replicas_.size(); ++i) {
    if (replicas_[i].phase != ModelledPhase::kReady) continue;
    found.push_back({.number = i, .attempt = replicas_[i].attempt, .group = &group_of(i)});
  }
  return found;
}

std::uint32_t ReplicaFleet::count(std::size_t group, ModelledPhase phase) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      replicas_, [&](const Modelled& each) { return each.group == group && each.phase == phase; }));
}

bool ReplicaFleet::fits_any(std::uint32_t prompt_tokens, std::uint32_t output_tokens) const {
  return std::ranges::any_of(replicas_, [&](const Modelled& each) {
    return setup_.groups[each.group].duty != ReplicaDuty::kPrefill &&
           each.engine->fits(prompt_tokens, output_tokens);
  });
}

std::uint32_t ReplicaFleet::order(std::size_t group, ModelledPhase phase, Picoseconds now) {
  const ReplicaGroup& made = setup_.groups[group];
  Modelled& replica = replicas_.emplace_back();
  replica.group = static_cast<std::uint32_t>(group);
  replica.phase = phase;
  replica.ordered = now;
  replica.engine = std::make_unique<EngineModel>(made.rules, made.cost, units_);
  return size() - 1;
}

void ReplicaFleet::drain(std::uint32_t replica, Picoseconds now) {
  replicas_[replica].phase = ModelledPhase::kDraining;
  (void)retire(replica, now);
}

bool ReplicaFleet::retire(std::uint32_t replica, Picoseconds now) {
  Modelled& each = replicas_[replica];
  if (each.phase != ModelledPhase::kDraining || each.engine->next() != kNeverPs) return false;
  each.phase = ModelledPhase::kGone;
  each.gone = now;
  return true;
}

std::vector<EngineRequest> ReplicaFleet::crash(std::uint32_t replica, Picoseconds now) {
  Modelled& each = replicas_[replica];
  ++each.attempt;
  each.phase = ModelledPhase::kStarting;
  return each.engine->fail(now);
}

void ReplicaFleet::touch(std::uint32_t replica) {
  const Picoseconds time = replicas_[replica].engine->next();
  if (time == kNeverPs) return;
  due_.push_back({time, replica});
  std::ranges::push_heap(due_, is_later);
}

void ReplicaFleet::drop_stale() {
  while (!due_.empty() && replicas_[due_.front().replica].engine->next() != due_.front().time) {
    std::ranges::pop_heap(due_, is_later);
    due_.pop_back();
  }
}

Picoseconds ReplicaFleet::next() {
  drop_stale();
  return due_.empty() ? kNeverPs : due_.front().time;
}

std::uint32_t ReplicaFleet::due() {
  drop_stale();
  ORRERY_ASSERT(!due_.empty(), "an engine is due");
  const std::uint32_t replica = due_.front().replica;
  std::ranges::pop_heap(due_, is_later);
  due_.pop_back();
  return replica;
}

void ReplicaFleet::report(ServiceFigures& figures, Picoseconds end) const {
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;
  for (const Modelled& each : replicas_) {
    const ReplicaGroup& group = setup_.groups[each.group];
    const EngineModelCounters& counters = each.engine->counters();
    const double lived = seconds_of_ps(std::min(each.gone, end) - each.ordered);
    const double busy = seconds_of_ps(counters.busy);
    figures.replicas.alive_s += lived;
    figures.replicas.busy_s += busy;
    figures.replicas.usd += lived * group.usd_h / 3600;
    figures.replicas.joules += busy * group.watts + std::max(lived - busy, 0.0) * group.watts_idle;
    figures.detours.preemptions += counters.preemptions;
    figures.replicas.steps += counters.steps;
    figures.replicas.events += counters.events;
    prompt += counters.prompt_tokens;
    cached += counters.cached_tokens;
  }
  if (prompt > 0) figures.hit_rate = static_cast<double>(cached) / static_cast<double>(prompt);
}

}  // namespace orrery

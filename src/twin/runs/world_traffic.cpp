#include "twin/runs/world_traffic.hpp"

#include <algorithm>

namespace orrery {

WorldTraffic::WorldTraffic(const WorldFacts& facts, Agenda& agenda)
    : calibration_(facts.rules.costs ? facts.calibration : nullptr),
      agenda_(&agenda),
      plans_(facts.plans) {}

Contention* WorldTraffic::contention_of(const RunningJob& job, const State& state) {
  if (calibration_ == nullptr) return nullptr;
  if (!contention_ && Contention::concerns(job, state, plans_)) {
    contention_.emplace(state.fleet().view(), *calibration_, plans_);
  }
  return contention();
}

void WorldTraffic::plan_arrival(Instant now) {
  const Instant next = contention_->next();
  if (next == next_arrival_) return;
  next_arrival_ = next;
  ++arrivals_planned_;
  if (next == Instant::max()) return;
  agenda_->push(std::max(next, now), EventRank::kEnds,
                {.kind = WorldEventKind::kMoved, .serial = arrivals_planned_});
}

std::vector<Moved> WorldTraffic::take_arrived(Instant now) {
  next_arrival_ = Instant::max();
  return contention_->advance(now);
}

}  // namespace orrery

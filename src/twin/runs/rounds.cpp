#include "twin/runs/rounds.hpp"

#include <algorithm>

namespace orrery {

Duration Rounds::take_steps(const RunningJob& placed, Duration longest, Instant now) {
  Steps& steps = jobs_[placed.id.value()];
  const PlacedGang& gang = placed.gangs.front();
  const double speed =
      steps.per_second * placed.request->roles[gang.role].options[gang.option].speed;
  const auto whole = static_cast<std::uint64_t>(longest.count_seconds() * speed);
  const std::uint64_t taken = std::min(std::max<std::uint64_t>(whole, 1), steps.left);
  const Duration time = Duration::from_seconds(static_cast<double>(taken) / speed);
  steps.left -= taken;
  if (steps.left == 0) {
    runs_->exhaust(placed.id);
    agenda_->push(now + time, EventRank::kEnds, runs_->event_of(WorldEventKind::kEnd, placed.id));
  }
  return time;
}

void Rounds::begin(Duration longest, const State& state, Instant now) {
  if (under_way_) return;
  const auto runs = [this](const RunningJob& placed) { return (*runs_)[placed.id].progress.up(); };
  Duration round;
  for (const RunningJob& placed : state.running()) {
    if (!runs(placed)) continue;
    under_way_ = true;
    round = std::max(round, take_steps(placed, longest, now));
  }
  if (!under_way_) return;
  for (const RunningJob& placed : state.running()) {
    if (!runs(placed) || jobs_[placed.id.value()].left > 0) continue;
    WorldEvent gone = runs_->event_of(WorldEventKind::kGone, placed.id);
    ++gone.serial;  // its end comes first
    agenda_->push(now + round, EventRank::kThen, gone);
  }
  agenda_->push(now + round, EventRank::kSettle, {.kind = WorldEventKind::kRoundEnd});
}

}  // namespace orrery

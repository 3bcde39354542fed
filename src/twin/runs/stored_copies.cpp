#include "twin/runs/stored_copies.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

void StoredCopies::plan_first(JobId job, std::uint32_t attempt, const CheckpointPace& pace,
                              Instant now) {
  copies_[job.value()].begun = now;
  plan_next(job, attempt, pace, now);
}

void StoredCopies::plan_next(JobId job, std::uint32_t attempt, const CheckpointPace& pace,
                             Instant now) {
  Copies& copies = copies_[job.value()];
  const Instant due = copies.begun + pace.interval + pace.cost;
  agenda_->push(
      std::max(now, due), EventRank::kEnds,
      {.kind = WorldEventKind::kCopy, .job = job, .serial = ++copies.number, .attempt = attempt});
}

void StoredCopies::begin(const RunningJob& placed, RunProgress& progress, const State& state,
                         Instant now) {
  Copies& copies = copies_[placed.id.value()];
  progress.count_stall();
  copies.begun = now;
  copies.left = progress.left();
  (void)traffic_->contention()->move_state(MoveKind::kSave, placed, state, now);
}

bool StoredCopies::begin_last(const RunningJob& placed, const RunProgress& progress,
                              const State& state, Instant now) {
  traffic_->leave(placed.id, now);  // an older copy under way is not worth finishing
  copies_[placed.id.value()].left = progress.left();
  return traffic_->contention()->move_state(MoveKind::kSave, placed, state, now);
}

void StoredCopies::complete(JobId job, RunProgress& progress, Instant now) {
  progress.complete_copy(*std::exchange(copies_[job.value()].left, std::nullopt), now);
}

void StoredCopies::drop(JobId job) {
  Copies& copies = copies_[job.value()];
  ++copies.number;
  copies.left.reset();
}

}  // namespace orrery

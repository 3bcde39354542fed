// Contention between jobs, and the bytes that their starts and copies wait for.
#include <algorithm>

#include "twin/world/world.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kMovesFirst = 0;

}  // namespace

Contention* World::contention(const RunningJob& job, const State& state) {
  if (facts_.calibration == nullptr || !facts_.rules.costs) return nullptr;
  if (!contention_ && Contention::concerns(job, state, book_)) {
    contention_.emplace(state.fleet().view(), *facts_.calibration, book_);
  }
  return contention_ ? &*contention_ : nullptr;
}

Duration World::stage_data(Run& run, const RunningJob& placed, const State& state) {
  const std::vector<DataRequest>& data = placed.request->data;
  if (data.empty() || !facts_.rules.costs) return {};
  Contention* shared = contention(placed, state);
  const NodeId first = placed.gangs.front().allocation.ranks.front().node;
  const std::uint32_t site = site_ordinal(*topology_, first);
  const bool fetched = (run.data_at & site_bit(site)) != 0;
  double alone = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const Staging staging =
        shared != nullptr ? shared->stage(placed, i, state.now()) : Staging::kNoStorage;
    if (staging == Staging::kMoving) ++run.awaited;
    if (staging != Staging::kNoStorage || data[i].site == site || fetched) continue;
    alone += transfer_of(data[i], site, *topology_).seconds;
  }
  run.data_at |= site_bit(site);
  return Duration::from_seconds(alone);
}

void World::join(Run& run, JobId job, const State& state) {
  const RunningJob& placed = state.running(job);
  Contention* shared = contention(placed, state);
  if (shared == nullptr) return;
  shared->run(placed, state);
  run.writes = run.interval != Duration::max() && shared->keeps_copies(placed, state);
  if (!run.writes) return;
  run.copy_at = run.since;
  queue_.push(run.since + run.interval + run.cost, kMovesFirst,
              {.kind = Kind::kCopy, .job = job, .serial = ++run.copies, .attempt = run.attempt});
}

void World::leave(JobId job, Instant now) {
  Run& run = runs_[job.value()];
  ++run.copies;
  run.copy_left.reset();
  run.writes = false;
  if (contention_) contention_->leave(job, now);
}

void World::share(const State& state, Instant now) {
  if (!contention_) return;
  for (const JobId id : contention_->update(now)) {
    Run& run = runs_[id.value()];
    if (!run.up || run.halted) continue;
    settle(run, now);
    set_rate(run, state, id);
    schedule_end(run, id, now);
  }
  const Instant next = contention_->next();
  if (next == next_move_) return;
  next_move_ = next;
  ++moves_planned_;
  if (next == Instant::max()) return;
  queue_.push(std::max(next, now), kMovesFirst, {.kind = Kind::kMoved, .serial = moves_planned_});
}

// The stall of the snapshot is part of the rate; the bytes are written while the job runs on.
void World::begin_copy(Run& run, JobId job, const State& state, Instant now) {
  settle(run, now);
  run.saving += run.cost;
  run.copy_at = now;
  run.copy_left = run.left;
  (void)contention_->move_state(MoveKind::kSave, state.running(job), state, now);
  share(state, now);
}

bool World::last_copy(Run& run, JobId job, const State& state, Instant now) {
  contention_->leave(job, now);  // an older copy under way is not worth finishing
  run.copy_left = run.left;
  return contention_->move_state(MoveKind::kSave, state.running(job), state, now);
}

void World::bytes_arrived(const State& state, Instant now) {
  next_move_ = Instant::max();
  for (const Moved& moved : contention_->advance(now)) {
    Run& run = runs_[moved.job.value()];
    if (moved.kind != MoveKind::kSave) {
      if (--run.awaited > 0) continue;
      queue_.push(
          now + *std::exchange(run.loading, std::nullopt), 1,
          {.kind = Kind::kUp, .job = moved.job, .serial = run.serial, .attempt = run.attempt});
      continue;
    }
    run.safe_left = *std::exchange(run.copy_left, std::nullopt);
    run.saved = now;
    if (!run.up) {  // last copy before a stop
      queue_.push(
          now, kMovesFirst,
          {.kind = Kind::kGone, .job = moved.job, .serial = run.serial, .attempt = run.attempt});
      continue;
    }
    // A system too slow for the checkpoint interval lengthens the interval.
    queue_.push(
        std::max(now, run.copy_at + run.interval + run.cost), kMovesFirst,
        {.kind = Kind::kCopy, .job = moved.job, .serial = ++run.copies, .attempt = run.attempt});
  }
  share(state, now);
}

}  // namespace orrery

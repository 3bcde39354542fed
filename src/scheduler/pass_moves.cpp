// Running jobs that would be better off elsewhere.
#include <algorithm>

#include "scheduler/pass.hpp"
#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

/// Moves a pass proposes: each stops a job for a while.
constexpr std::uint32_t kMovesMax = 4;
/// Blocked gangs that room is made for in one pass.
constexpr std::size_t kGoalsMax = 4;
/// Steps over the canonical ones from which another place is looked for.
constexpr double kRatioWorthALook = 1.02;

}  // namespace

// A job whose network got worse moves when what it gains over the rest of its run exceeds the work
// it loses: since its last checkpoint, the checkpoint itself, the restart.
void Pass::move_jobs() {
  std::uint32_t moves = 0;
  for (std::uint32_t i = 0; i < s_.running.size() && moves < kMovesMax; ++i) {
    const RunningJob& job = s_.running[i];
    const bool may = stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
                     job.gangs.front().allocation.ranks.size() > 1 &&
                     s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (may && move(i)) ++moves;
  }
}

bool Pass::move(std::uint32_t running) {
  const RunningJob& job = s_.running[running];
  const PlacedGang& old = job.gangs.front();
  const GangOption& option = job.request->roles[old.role].options[old.option];
  if (!option.plan) return false;  // one place is like another
  const GangRequest& gang = option.gang;
  const WaitingJob left = as_waiting(job, s_.now);
  // Of a place that is given the terms rest on links alone, not on who is there.
  const auto here = terms_of({s_, policy_, m_.now_->view(), nullptr}, left, old);
  if (!here || !here->length || here->ratio <= kRatioWorthALook) return false;
  FleetOverlay without(m_.now_->view());
  give_back(without, std::span<const PlacedGang>(job.gangs));
  PlaceOptions options;
  options.most = policy_.offers;
  const double devices = old.allocation.devices();
  const double cost = lost_device_seconds(job);
  std::optional<PlacedGang> best;
  GangTerms best_terms;
  for (Allocation& offer : m_.placer_.placer().offers(without.view(), gang, options)) {
    PlacedGang there{old.role, old.option, std::move(offer), gang.host};
    const auto terms = terms_of({s_, policy_, without.view(), nullptr}, left, there);
    if (!terms || !terms->length || terms->ratio >= here->ratio) continue;
    if (best && terms->ratio >= best_terms.ratio) continue;
    best = std::move(there);
    best_terms = *terms;
  }
  if (!best) return false;
  const double gained = (*here->length - *best_terms.length).count_seconds() * devices;
  if (gained <= cost) return false;
  // What is free of its new place is taken; its old one it has until it has left.
  keep_from_others(*best);
  stopped_[running] = 1;
  result_.decisions.emplace_back(
      ResizeJob{job.id, {*std::move(best)}, {best_terms}, std::nullopt, gained, cost});
  return true;
}

// Blocked gangs for which there are devices enough, but not together. Whoever writes checkpoints
// may be moved, where starting the gang an horizon earlier is worth more than the moves cost.
void Pass::defragment() {
  std::vector<const WaitingJob*> jobs;
  std::vector<RoomGoal> goals;
  for (const WaitingJob* job : blocked_) {
    const GangRequest& gang = job->request->roles.front().options.front().gang;
    const std::uint32_t devices = devices_wanted(*job->request);
    if (m_.now_->view().free(Topology::root(), gang.type).devices < devices) continue;
    jobs.push_back(job);
    goals.push_back({[this, job](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
                       GangsOrRefusal gangs =
                           m_.placer_.place(view, *job->request, rules_for(*job));
                       if (!gangs) return std::nullopt;
                       return *std::move(gangs);
                     },
                     devices, static_cast<std::int64_t>(policy_.horizon.value() * devices * 1000)});
    if (goals.size() == kGoalsMax) break;
  }
  if (goals.empty()) return;
  std::vector<std::uint32_t> who;
  std::vector<MovableGang> movable;
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool may =
        stopped_[i] == 0 && !job.stopping && job.gangs.size() == 1 &&
        (job.request->preemptible || job.request->checkpoint_interval != Duration::max()) &&
        s_.now - job.started >= Duration::from_seconds(policy_.min_run.value());
    if (!may) continue;
    const PlacedGang& gang = job.gangs.front();
    who.push_back(i);
    movable.push_back({{&gang.allocation, gang.host},
                       &job.request->roles[gang.role].options[gang.option].gang,
                       static_cast<std::int64_t>(lost_device_seconds(job) * 1000)});
  }
  if (movable.empty()) return;
  // What is kept for somebody is no room.
  const FleetView view = m_.reserved_->any() ? m_.reserved_->shadow() : m_.now_->view();
  Placer placer(m_.placer_.placer().tree());
  for (RoomPlan& plan : make_room(view, movable, goals, placer)) {
    carry_out(plan, who, *jobs[plan.goal]);
  }
}

void Pass::carry_out(RoomPlan& plan, std::span<const std::uint32_t> who, const WaitingJob& job) {
  if (plan.moves.empty()) return;
  for (GangMove& move : plan.moves) {
    const RunningJob& moved = s_.running[who[move.gang]];
    PlacedGang there = moved.gangs.front();
    there.allocation = std::move(move.to);
    stopped_[who[move.gang]] = 1;
    keep_from_others(there);
    const auto terms = terms_of({s_, policy_, s_.fleet, nullptr}, as_waiting(moved, s_.now), there);
    result_.decisions.emplace_back(ResizeJob{moved.id,
                                             {std::move(there)},
                                             {terms ? *terms : moved.terms.front()},
                                             job.id,
                                             static_cast<double>(plan.gain) / 1000,
                                             lost_device_seconds(moved)});
  }
  Reservation slot{job.id, s_.now, std::move(plan.gangs)};
  for (const PlacedGang& gang : slot.gangs) keep_from_others(gang);
  // It starts here now, not in the slot it was given before.
  std::erase_if(result_.reservations, [&](const Reservation& one) { return one.job == job.id; });
  result_.reservations.push_back(std::move(slot));
}

}  // namespace orrery

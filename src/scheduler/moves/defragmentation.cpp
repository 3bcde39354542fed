#include "scheduler/moves/defragmentation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scheduler/moves/movable.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// Blocked jobs for which one pass makes room.
constexpr std::size_t kGoalsMax = 4;

}  // namespace

Defragmentation::Defragmentation(PassContext& pass, StartSearch& search)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search) {}

double Defragmentation::sooner(const WaitingJob& job) const {
  const double horizon = policy_.horizon.value();
  for (const Reservation& slot : pass_.result.reservations) {
    if (slot.job == job.id) return std::min(horizon, (slot.start - s_.now).count_seconds());
  }
  return horizon;
}

void Defragmentation::make_room() {
  if (pass_.blocked().empty()) return;
  // Devices kept by reservations are no room for a job, and moves do not free them.
  const FleetView view =
      pass_.fleet.reserved().any() ? pass_.fleet.reserved().shadow() : pass_.fleet.now();
  std::vector<const WaitingJob*> jobs;
  std::vector<RoomGoal> goals;
  for (const WaitingJob* job : pass_.blocked()) {
    const GangRequest& gang = job->request->roles.front().options.front().gang;
    const std::uint32_t devices = devices_wanted(*job->request);
    if (view.free(Topology::root(), gang.type).devices < devices) continue;
    jobs.push_back(job);
    goals.push_back({place_try(search_.jobs(), *job->request, search_.rules_for(*job)), devices,
                     std::llround(sooner(*job) * devices * 1000)});
    if (goals.size() == kGoalsMax) break;
  }
  if (goals.empty()) return;
  std::vector<std::uint32_t> who;
  std::vector<MovableGang> movable;
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    if (!is_movable(pass_, i) || !may_be_moved(job)) continue;
    const PlacedGang& gang = job.gangs.front();
    who.push_back(i);
    movable.push_back({{&gang.allocation, gang.host},
                       &request_of(*job.request, gang),
                       static_cast<std::int64_t>(lost_device_seconds(job, s_.now) * 1000)});
  }
  if (movable.empty()) return;
  Placer placer(search_.gangs().tree());
  for (RoomPlan& plan : orrery::make_room(view, movable, goals, placer)) {
    carry_out(plan, who, *jobs[plan.goal]);
  }
}

void Defragmentation::carry_out(RoomPlan& plan, std::span<const std::uint32_t> who,
                                const WaitingJob& job) {
  if (plan.moves.empty()) return;
  const std::optional<PowerBudget> before = pass_.power.saved();
  std::vector<ResizeJob> moves;
  moves.reserve(plan.moves.size());
  for (GangMove& move : plan.moves) {
    const RunningJob& moved = s_.running[who[move.gang]];
    PlacedGang there = moved.gangs.front();
    there.allocation = std::move(move.to);
    pass_.power.leave(moved);
    const auto terms = terms_of(search_.context_of(s_.fleet), as_waiting(moved, s_.now), there);
    if (!terms && terms.error().kind == RejectionKind::kPower) {
      pass_.power.restore(before);
      return;
    }
    pass_.power.enter(there, terms ? *terms : pass_.power.terms_now(moved, 0));
    moves.push_back({moved.id,
                     {std::move(there)},
                     {terms ? *terms : moved.terms.front()},
                     job.id,
                     static_cast<double>(plan.gain) / 1000,
                     lost_device_seconds(moved, s_.now)});
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    pass_.set_decided(who[plan.moves[i].gang]);
    pass_.fleet.keep_from_others(moves[i].gangs.front());
    pass_.result.decisions.emplace_back(std::move(moves[i]));
  }
  Reservation slot{job.id, s_.now, std::move(plan.gangs)};
  for (const PlacedGang& gang : slot.gangs) pass_.fleet.keep_from_others(gang);
  // The job starts here, not with the reservation that it had before.
  std::erase_if(pass_.result.reservations,
                [&](const Reservation& one) { return one.job == job.id; });
  pass_.result.reservations.push_back(std::move(slot));
}

}  // namespace orrery

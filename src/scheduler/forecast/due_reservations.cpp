#include "scheduler/forecast/due_reservations.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/forecast/new_reservations.hpp"
#include "scheduler/pass/closures.hpp"

namespace orrery {
namespace {

using Masks = std::map<NodeId, std::uint64_t>;

Masks devices_of_stopping(std::span<const RunningJob> running) {
  Masks masks;
  for (const RunningJob& job : running) {
    if (!job.stopping) continue;
    for (const PlacedGang& gang : job.gangs) {
      for (const auto* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
        for (const NodeDevices& at : *list) masks[at.node] |= at.devices;
      }
    }
  }
  return masks;
}

/// The positions of jobs with a reservation among the waiting: few of many.
std::map<JobId, std::uint32_t> waiting_with_slot(std::span<const WaitingJob> waiting,
                                                 std::span<const Reservation> slots) {
  std::vector<JobId> jobs;
  for (const Reservation& slot : slots) jobs.push_back(slot.job);
  std::sort(jobs.begin(), jobs.end());
  std::map<JobId, std::uint32_t> positions;
  for (std::uint32_t i = 0; i < waiting.size(); ++i) {
    const JobId id = waiting[i].id;
    if (std::binary_search(jobs.begin(), jobs.end(), id)) positions.emplace(id, i);
  }
  return positions;
}

/// The state of the devices of a reservation that is due.
enum class SlotState { kFree, kLeaving, kBroken };

SlotState state_of(const Reservation& slot, const FleetView& view, const Masks& leaving) {
  SlotState state = SlotState::kFree;
  for (const PlacedGang& gang : slot.gangs) {
    for (const auto* list : {&gang.allocation.ranks, &gang.allocation.idle}) {
      for (const NodeDevices& at : *list) {
        const NodeState& node = view.node(at.node);
        if (node.health != NodeHealth::kReady) return SlotState::kBroken;
        const std::uint64_t busy = at.devices & ~node.free_mask;
        if (busy == 0) continue;
        const auto found = leaving.find(at.node);
        const std::uint64_t soon = found == leaving.end() ? 0 : found->second;
        if ((busy & ~soon) != 0) return SlotState::kBroken;
        state = SlotState::kLeaving;
      }
    }
  }
  return state;
}

/// Hides all free devices.
void hide_free(FleetOverlay& fleet) {
  const FleetView view = fleet.view();
  std::vector<NodeDevices> free;
  for (std::uint32_t n = 0; n < view.topology().node_count(); ++n) {
    const NodeState& node = view.node(NodeId(n));
    if (node.available() > 0) free.push_back({NodeId(n), node.free_mask});
  }
  fleet.hide(free);
}

}  // namespace

DueReservations::DueReservations(PassContext& pass, StartSearch& search, ClockSteps& clocks)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search), clocks_(clocks) {}

void DueReservations::serve() {
  for (const Closure& closure : s_.closures) {
    const bool comes = closure.from > s_.now && !closure.only.valid();
    if (comes) pass_.fleet.edit_reserved().close(closure);
  }
  start_on_own_nodes();
  if (s_.reserved.empty()) return;
  const std::map<JobId, std::uint32_t> waiting = waiting_with_slot(s_.waiting, s_.reserved);
  const Masks leaving = devices_of_stopping(s_.running);
  const bool begins_round =
      policy_.preemption == PreemptionRule::kRounds && pass_.kind == PassKind::kFull;
  for (const Reservation& slot : s_.reserved) {
    const auto found = waiting.find(slot.job);
    const bool due = slot.start <= s_.now;
    if (!due &&
        (makes_reservations(policy_, pass_.kind) || policy_.preemption == PreemptionRule::kRounds))
      continue;
    const SlotState state = due ? state_of(slot, pass_.fleet.now(), leaving) : SlotState::kLeaving;
    if (state == SlotState::kBroken) continue;
    if (found == waiting.end()) {
      keep_for_mover(slot);
      continue;
    }
    if (state == SlotState::kFree && start_in(s_.waiting[found->second], slot)) {
      pass_.pass_over(slot.job);
      continue;
    }
    if (begins_round) continue;
    pass_.keep(slot);
    pass_.result.reservations.push_back(slot);
    if (!due) {
      pass_.hold_until(slot.start);
      continue;
    }
    pass_.usage.count(*s_.waiting[found->second].request, slot.gangs, UsageEdits::Held::kMore);
    pass_.pass_over(slot.job);
    pass_.wait(s_.waiting[found->second], {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

void DueReservations::start_on_own_nodes() {
  for (const Closure& closure : s_.closures) {
    if (!closure.only.valid()) continue;
    const auto job = std::find_if(s_.waiting.begin(), s_.waiting.end(),
                                  [&](const WaitingJob& each) { return each.id == closure.only; });
    if (job == s_.waiting.end()) continue;
    // What is free elsewhere is hidden: the job's nodes are enough for it.
    FleetOverlay own(s_.fleet);
    hide_free(own);
    for (const NodeDevices& at : closure.nodes) {
      NodeState state = s_.fleet.node(at.node);
      state.health = NodeHealth::kReady;
      own.set_node(at.node, state);
    }
    StartOrRefusal found = search_.in(own.view(), *job);
    if (!found || is_closed(found->gangs, s_, pass_.end_of(*found))) continue;
    clocks_.share_power(*job, found);
    if (!found) continue;
    pass_.start(*job, *std::move(found));
    pass_.pass_over(closure.only);
  }
}

void DueReservations::keep_for_mover(const Reservation& slot) {
  const bool leaves = std::any_of(s_.running.begin(), s_.running.end(), [&](const RunningJob& job) {
    return job.id == slot.job && job.stopping;
  });
  if (!leaves) return;
  pass_.keep(slot);
  pass_.result.reservations.push_back(slot);
}

bool DueReservations::start_in(const WaitingJob& job, const Reservation& slot) {
  StartOrRefusal found = search_.with_terms(pass_.fleet.now(), job, slot.gangs);
  clocks_.share_power(job, found, slot.gangs);
  if (!found) return false;
  if (policy_.choice == OptionChoice::kCheapest) {
    const FleetView now = pass_.fleet.now();
    found->price = search_.price_of_all(now, job, found->gangs, found->terms);
    *found->price += price_of_lost_work(search_.context_of(now), job, slot.lost_device_seconds);
  }
  pass_.start(job, *std::move(found));
  return true;
}

}  // namespace orrery

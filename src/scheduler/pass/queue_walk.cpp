#include "scheduler/pass/queue_walk.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/tenants/fair_order.hpp"

namespace orrery {
namespace {

/// The most jobs behind one that stops the queue that are checked for room.
constexpr std::size_t kHeldBackAsked = 1000;

/// Devices of the fleet, by type.
std::vector<std::int64_t> capacity_of(const Topology& topology) {
  std::vector<std::int64_t> devices(topology.type_count());
  for (std::uint32_t t = 0; t < devices.size(); ++t) {
    devices[t] = topology.device_count(Topology::root(), FleetTypeId(t));
  }
  return devices;
}

/// The queue as it is now.
const WaitingQueue& updated(WaitingQueue& queue, const PassContext& pass) {
  queue.update(pass.situation, pass.policy);
  return queue;
}

}  // namespace

QueueWalk::QueueWalk(PassContext& pass, StartSearch& search, ClockSteps& clocks,
                     QueueMemory& memory)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      clocks_(clocks),
      queue_(updated(memory.queue, pass)),
      refusals_(memory.refusals),
      room_(pass, search, memory.room, queue_.askers()),
      groups_(queue_.groups()) {
  refusals_.begin(s_);
  pass_.result.waiting.reserve(s_.waiting.size());
}

void QueueWalk::run_in_order() {
  const std::span<const QueuedJob> order = queue_.order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (consider(order[i]) == Queue::kGoesOn) continue;
    if (pass_.kind == PassKind::kIncremental) note_held_back(order.subspan(i + 1));
    return;
  }
}

// One job with room is enough: it would run if the job before it did not stop the queue.
void QueueWalk::note_held_back(std::span<const QueuedJob> behind) {
  const FleetView now = pass_.fleet.now();
  std::set<ClassId> without_room;
  for (const QueuedJob& queued : behind.first(std::min(behind.size(), kHeldBackAsked))) {
    const WaitingJob& job = s_.waiting[queued.at];
    if (queued.class_id.valid() && without_room.contains(queued.class_id)) continue;
    if (!pass_.usage.may_take_any(*job.request)) continue;
    if (!search_.fits(now, job, search_.rules_for(job))) {
      if (queued.class_id.valid()) without_room.insert(queued.class_id);
      continue;
    }
    for (const RoleRequest& role : job.request->roles) {
      for (const GangOption& option : role.options) {
        const FreeCount free = now.free(Topology::root(), option.gang.type);
        if (free.devices >= option.gang.devices) pass_.result.held_back.push_back(option.gang.type);
      }
    }
    std::ranges::sort(pass_.result.held_back);
    return;
  }
}

void QueueWalk::run_fair() {
  const bool serves = std::any_of(queue_.order().begin(), queue_.order().end(),
                                  [](const QueuedJob& queued) { return queued.serves; });
  if (serves && run_fair_over(Services::kOnly) == Queue::kStops) return;
  run_fair_over(Services::kNone);
}

QueueWalk::Queue QueueWalk::run_fair_over(Services services) {
  const std::span<const QueuedJob> order = queue_.order();
  std::vector<std::vector<std::uint32_t>> queues(
      s_.waiting.empty() ? 0 : pass_.usage.now().tree().size());
  std::vector<Waiting> wanted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (order[i].serves != (services == Services::kOnly)) continue;
    auto& queue = queues[order[i].tenant.value()];
    if (queue.empty()) {
      const JobRequest& request = *job_of(order[i]).request;
      wanted.push_back({request.tenant, request.roles.front().options.front().gang.type});
    }
    queue.push_back(i);
  }
  if (wanted.empty()) return Queue::kGoesOn;
  FairOrder fair(pass_.usage.live(), capacity_of(s_.fleet.topology()), wanted);
  std::vector<std::uint32_t> next(queues.size());
  while (const std::optional<TenantId> tenant = fair.next()) {
    auto& at = next[tenant->value()];
    const std::vector<std::uint32_t>& queue = queues[tenant->value()];
    pass_.usage.forget_changed();
    if (consider(order[queue[at++]]) == Queue::kStops) return Queue::kStops;
    for (const TenantId changed : pass_.usage.changed()) fair.usage_changed(changed);
    if (at == queue.size()) fair.exhausted(*tenant);
  }
  return Queue::kGoesOn;
}

QueueWalk::Queue QueueWalk::consider(const QueuedJob& queued) {
  const WaitingJob& job = job_of(queued);
  if (pass_.is_passed_over(job.id)) return Queue::kGoesOn;
  if (queued.dated || queued.planned) pass_.hold_until(s_.now);
  Refusal refusal;
  bool asked = true;
  if (const Refusal* known = remembered(queued)) {
    refusal = *known;
  } else if (pass_.result.candidates >= policy_.budget && pass_.kind == PassKind::kIncremental) {
    refusal = {RejectionKind::kBusy, TopologyLevel::kFleet, 0};
    asked = false;
    pass_.hold_until(s_.now);
  } else {
    StartOrRefusal found = search_.find(job);
    clocks_.share_power(job, found);
    if (found) {
      pass_.start(job, *std::move(found));
      return Queue::kGoesOn;
    }
    refusal = found.error().refusal;
    remember(queued, found.error());
  }
  if (asked && room_.make_room(queued, refusal)) return Queue::kGoesOn;
  pass_.wait(job, refusal);
  room_.reserve(queued, refusal);
  return policy_.blocked == Blocked::kStops ? Queue::kStops : Queue::kGoesOn;
}

// The refusal of a placement class says nothing about quotas, which are the tenant's, so
// may_take_any() is checked.
const Refusal* QueueWalk::remembered(const QueuedJob& queued) {
  if (const Refusal* known = refusals_.of_class(queued.class_id)) return known;
  const Refusal* known = refusals_.of_placement_class(queued.placement_class);
  return known != nullptr && may_take_any(queued) ? known : nullptr;
}

// Only kBusy is remembered: a quota refuses a tenant, not a class. With priorities or guarantees
// one job of a class may get room that another does not, so that is tried anew for each job.
void QueueWalk::remember(const QueuedJob& queued, const StartRefusal& refused) {
  const bool lasts =
      refused.refusal.kind == RejectionKind::kBusy && refused.cause != RefusalCause::kReservation;
  if (!queued.class_id.valid() || !lasts) return;
  refusals_.remember_class(queued.class_id, refused.refusal);
  if (refused.cause == RefusalCause::kNoRoom && !pass_.fleet.hides()) {
    refusals_.remember_placement_class(queued.placement_class, refused.refusal);
  }
}

bool QueueWalk::may_take_any(const QueuedJob& queued) {
  const JobRequest& request = *job_of(queued).request;
  if (queued.group == QueuedJob::kNone) return pass_.usage.may_take_any(request);
  Group& group = groups_[queued.group];
  if (group.under != pass_.usage.changes()) {
    group = {pass_.usage.changes(), pass_.usage.may_take_any(request)};
  }
  return group.may_take_any;
}

}  // namespace orrery

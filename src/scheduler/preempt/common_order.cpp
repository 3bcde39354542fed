#include "scheduler/preempt/common_order.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

CommonOrder::CommonOrder(PassContext& pass, StartSearch& search)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search) {}

std::vector<CommonOrder::Entry> CommonOrder::entries() const {
  std::vector<Entry> order;
  order.reserve(s_.waiting.size() + s_.running.size());
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    order.push_back({key_of(s_.waiting[i], policy_, s_), i, false});
  }
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    order.push_back({key_of(as_waiting(s_.running[i], s_.now), policy_, s_), i, true});
  }
  std::sort(order.begin(), order.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return order;
}

void CommonOrder::replan_all() {
  const bool leaving = std::any_of(s_.running.begin(), s_.running.end(),
                                   [](const RunningJob& job) { return job.stopping; });
  if (leaving) return;
  for (const RunningJob& job : s_.running) {
    give_back(pass_.fleet.edit(), std::span<const PlacedGang>(job.gangs));
    pass_.usage.count(*job.request, job.gangs, UsageEdits::Held::kLess);
  }
  std::vector<std::pair<const WaitingJob*, PlannedStart>> starts;
  for (const Entry& entry : entries()) {
    const WaitingJob job =
        entry.running ? as_waiting(s_.running[entry.at], s_.now) : s_.waiting[entry.at];
    ++pass_.result.placements;
    StartOrRefusal found = search_.by_fit(pass_.fleet.now(), job, {});
    if (found) {
      take(pass_.fleet.edit(), std::span<const PlacedGang>(found->gangs));
      pass_.usage.count(*job.request, found->gangs, UsageEdits::Held::kMore);
    }
    if (entry.running) {
      const std::vector<PlacedGang>& has = s_.running[entry.at].gangs;
      const bool stays =
          found && std::equal(has.begin(), has.end(), found->gangs.begin(), found->gangs.end(),
                              [](const PlacedGang& a, const PlacedGang& b) {
                                return a.allocation == b.allocation;
                              });
      if (!stays) pass_.result.decisions.emplace_back(PreemptJob{job.id, job.id, 0});
    } else if (found) {
      starts.emplace_back(&s_.waiting[entry.at], *std::move(found));
    } else {
      pass_.wait(s_.waiting[entry.at], found.error().refusal);
      if (policy_.blocked == Blocked::kStops) break;
    }
  }
  const bool room_first = !pass_.result.decisions.empty();
  for (auto& [job, found] : starts) {
    if (room_first) {
      pass_.wait(*job, {RejectionKind::kBusy, TopologyLevel::kFleet, 0});
    } else {
      pass_.result.decisions.emplace_back(StartJob{job->id, std::move(found.gangs),
                                                   std::move(found.terms), found.length, Duration(),
                                                   found.price});
    }
  }
}

void CommonOrder::preempt_later(QueueWalk& walk) {
  const std::vector<std::uint32_t> places = walk.queue().places();
  const std::vector<Entry> order = entries();
  std::vector<std::uint32_t> position(s_.running.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (order[i].running) position[order[i].at] = i;
  }
  DeviceTaking& taking = walk.taking();
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (order[i].running) continue;
    const std::size_t waited = pass_.result.waiting.size();
    const QueuedJob& queued = walk.queue().order()[places[order[i].at]];
    if (walk.consider(queued) == QueueWalk::Queue::kStops) return;
    if (pass_.result.waiting.size() == waited || taking.gives_up()) continue;
    const WaitingJob& job = s_.waiting[order[i].at];
    const std::vector<std::uint32_t> who = later_than(i, position);
    const auto cost = [&](std::uint32_t r) {
      return static_cast<std::int64_t>(order.size() - position[r]) * s_.running[r].devices();
    };
    const bool made_room =
        taking.preempt(job, {.who = who, .cost = cost, .object = [&](const PreemptionPlan& plan) {
                               return taking.unjustified(job, plan);
                             }});
    if (made_room) pass_.result.waiting.pop_back();
  }
}

std::vector<std::uint32_t> CommonOrder::later_than(std::uint32_t place,
                                                   const std::vector<std::uint32_t>& places) const {
  const Duration settled = Duration::from_seconds(policy_.min_run.value());
  std::vector<std::uint32_t> who;
  for (std::uint32_t r = 0; r < s_.running.size(); ++r) {
    const RunningJob& running = s_.running[r];
    const bool may = places[r] > place && !running.stopping && !pass_.is_decided(r) &&
                     s_.now - running.started >= settled;
    if (may) who.push_back(r);
  }
  return who;
}

}  // namespace orrery

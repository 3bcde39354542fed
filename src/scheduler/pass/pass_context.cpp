#include "scheduler/pass/pass_context.hpp"

#include <utility>

#include "scheduler/pass/running_gang.hpp"

namespace orrery {

PassContext::PassContext(const Situation& situation_now, const Policy& policy_now,
                         PassKind pass_kind, PassFleet& pass_fleet)
    : situation(situation_now),
      policy(policy_now),
      kind(pass_kind),
      fleet(pass_fleet),
      usage(situation, policy),
      power(situation),
      decided_(situation.running.size()) {
  fleet.begin(situation.fleet);
}

void PassContext::start(const WaitingJob& job, PlannedStart start) {
  fleet.start(situation.now, start.gangs, start.length.value_or(Duration::max()));
  usage.count(*job.request, start.gangs, UsageEdits::Held::kMore);
  power.enter(start.gangs, start.terms);
  starts_.push_back({&job, result.decisions.size(), end_of(start)});
  result.decisions.emplace_back(StartJob{job.id, std::move(start.gangs), std::move(start.terms),
                                         start.length, Duration(), start.price});
}

void PassContext::wait(const WaitingJob& job, const Refusal& refusal) {
  result.waiting.push_back({job.id, refusal});
  if (refusal.kind == RejectionKind::kBusy) blocked_.push_back(&job);
}

void PassContext::preempt(std::uint32_t running, JobId in_favour_of) {
  const RunningJob& job = situation.running[running];
  set_decided(running);
  result.decisions.emplace_back(
      PreemptJob{job.id, in_favour_of, lost_device_seconds(job, situation.now)});
}

void PassContext::insert_decisions(std::size_t at, std::span<const Decision> decisions) {
  result.decisions.insert(result.decisions.begin() + static_cast<std::ptrdiff_t>(at),
                          decisions.begin(), decisions.end());
  for (StartedJob& start : starts_) {
    if (start.decision >= at) start.decision += decisions.size();
  }
}

// The first reservation creates the shadow, so earlier starts of this pass are removed from it
// here.
void PassContext::keep(const Reservation& reservation) {
  if (!fleet.reserved().any()) {
    for (const Decision& decision : result.decisions) {
      if (const auto* start = std::get_if<StartJob>(&decision)) {
        fleet.edit_reserved().cover(start->gangs);
      }
    }
  }
  fleet.edit_reserved().add(reservation);
}

void PassContext::reserve_now(Reservation reservation) {
  keep(reservation);
  for (const PlacedGang& gang : reservation.gangs) fleet.keep_from_others(gang);
  result.reservations.push_back(std::move(reservation));
}

void PassContext::pass_over(JobId job) {
  passed_over_.insert(std::lower_bound(passed_over_.begin(), passed_over_.end(), job), job);
}

}  // namespace orrery

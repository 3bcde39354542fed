#include "scheduler/yielders.hpp"

#include <algorithm>

#include "scheduler/queue_order.hpp"
#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

/// How long a bound is good for: in that time, what a job has had may grow.
constexpr Duration kBoundLasts = Duration::hours(1);

/// The most devices that a job may hold.
double devices_most(const JobRequest& job) {
  double devices = 0;
  for (const RoleRequest& role : job.roles) {
    std::uint32_t most = 0;
    for (const GangOption& option : role.options) most = std::max(most, option.gang.devices);
    devices += static_cast<double>(most) * role.gangs;
  }
  return devices;
}

}  // namespace

bool Yielders::Seat::is_of(const RunningJob& job) const {
  return id == job.id && request == job.request && started == job.started && since == job.since &&
         expected_end == job.expected_end && checkpoint == job.checkpoint && done == job.done &&
         attained == job.attained && stopping == job.stopping;
}

void Yielders::look(const Situation& situation, const Policy& policy) {
  situation_ = &situation;
  policy_ = &policy;
  if (ageing_ != policy.ageing.value() || plans_ != situation.changes.plans) forget();
  ageing_ = policy.ageing.value();
  plans_ = situation.changes.plans;
  seats_.resize(situation.running.size());
  bounds_.resize(seats_.size());
  settled_.resize(seats_.size());
  is_known_.assign(seats_.size(), 0);
  lowest_.assign(situation.usage->tree().size(), kNobody);
  elastic_ = false;
  for (std::uint32_t i = 0; i < seats_.size(); ++i) {
    const RunningJob& job = situation.running[i];
    Seat& seat = seats_[i];
    if (!seat.is_of(job) || situation.now > seat.until) {
      seat = seat_of(job);
      bounds_[i] = bound_of(job);
    }
    elastic_ = elastic_ || seat.elastic;
    if (!seat.preemptible) continue;
    std::int32_t& lowest = lowest_[seat.tenant.value()];
    lowest = std::min(lowest, seat.rank);
  }
}

Yielders::Seat Yielders::seat_of(const RunningJob& job) const {
  const JobRequest& request = *job.request;
  Seat seat{
      job.id,           request.tenant, job.request, job.started,  job.since,
      job.expected_end, job.checkpoint, job.done,    job.attained, situation_->now + kBoundLasts,
      rank_of(request), job.stopping};
  seat.preemptible = request.preemptible && !job.stopping;
  const auto elastic = [](const RoleRequest& role) { return role.elastic(); };
  seat.elastic = !job.stopping && std::any_of(request.roles.begin(), request.roles.end(), elastic);
  return seat;
}

// The time left shrinks as it runs; what it has had grows, and the time that it has waited shrinks,
// by no more than the most devices that it may hold.
double Yielders::bound_of(const RunningJob& job) const {
  constexpr double kRounding = 1 + 1e-9;
  const bool goes_on = job.request->preemptible && job.checkpoint != Duration::max();
  if (job.stopping || !goes_on) return 0;
  WaitingJob job_then = as_waiting(job, situation_->now);
  job_then.attained += kBoundLasts.count_seconds() * devices_most(*job.request);
  const Duration waited = situation_->now - job.submitted - ran_for(job_then);
  return aged(service_of(job_then, *situation_), waited, *policy_) * kRounding;
}

const Yielders::Settled& Yielders::settled(std::uint32_t at) {
  Settled& known = settled_[at];
  if (is_known_[at] != 0) return known;
  is_known_[at] = 1;
  known = {at};
  const RunningJob& job = situation_->running[at];
  if (situation_->now < job.started + Duration::from_seconds(policy_->min_run.value())) {
    return known;
  }
  known.devices = job.devices();
  known.service = aged_service(as_waiting(job, situation_->now), *policy_, *situation_);
  return known;
}

bool Yielders::has_surplus(std::uint32_t at) const {
  const RunningJob& job = situation_->running[at];
  if (job.gangs.size() != 1) return false;
  const PlacedGang& gang = job.gangs.front();
  const RoleRequest& role = job.request->roles[gang.role];
  return role.options[gang.option].gang.devices > role.devices_min;
}

}  // namespace orrery

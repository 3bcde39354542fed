#include "scheduler/yielders.hpp"

#include <algorithm>

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
      bounds_[i] = bound_of(job, seat);
    }
    elastic_ = elastic_ || seat.elastic;
    if (!seat.preemptible) continue;
    std::int32_t& lowest = lowest_[seat.tenant.value()];
    lowest = std::min(lowest, seat.rank);
  }
}

Yielders::Seat Yielders::seat_of(const RunningJob& job) const {
  const JobRequest& request = *job.request;
  Seat seat;
  seat.id = job.id;
  seat.tenant = request.tenant;
  seat.request = job.request;
  seat.started = job.started;
  seat.since = job.since;
  seat.expected_end = job.expected_end;
  seat.checkpoint = job.checkpoint;
  seat.done = job.done;
  seat.attained = job.attained;
  seat.submitted = job.submitted;
  seat.until = situation_->now + kBoundLasts;
  seat.basis = service_basis(request, situation_->plans);
  seat.devices = job.devices();
  seat.rank = rank_of(request);
  seat.stopping = job.stopping;
  seat.preemptible = request.preemptible && !job.stopping;
  const auto elastic = [](const RoleRequest& role) { return role.elastic(); };
  seat.elastic = !job.stopping && std::any_of(request.roles.begin(), request.roles.end(), elastic);
  return seat;
}

// The time left shrinks as it runs; what it has had grows, and the time that it has waited shrinks,
// by no more than the most devices that it may hold.
double Yielders::bound_of(const RunningJob& job, const Seat& seat) const {
  constexpr double kRounding = 1 + 1e-9;
  if (!seat.preemptible || job.checkpoint == Duration::max()) return 0;
  const double more = kBoundLasts.count_seconds() * devices_most(*job.request);
  const double attained = job.attained_at(situation_->now) + more;
  const double service = service_of(seat.basis, job.done_at(situation_->now), attained);
  const Duration waited = situation_->now - job.submitted - ran_for(seat.basis, attained);
  return aged(service, waited, *policy_) * kRounding;
}

const Yielders::Settled& Yielders::settled(std::uint32_t at) {
  Settled& known = settled_[at];
  if (is_known_[at] != 0) return known;
  is_known_[at] = 1;
  const Seat& seat = seats_[at];
  known = {at, seat.devices, 0};
  const Instant now = situation_->now;
  if (now < seat.started + Duration::from_seconds(policy_->min_run.value())) return known;
  // As attained_at(), which would count the devices.
  const double ran = now <= seat.since ? 0 : (now - seat.since).count_seconds();
  const double attained = now <= seat.since ? seat.attained : seat.attained + ran * seat.devices;
  const double service = service_of(seat.basis, situation_->running[at].done_at(now), attained);
  known.service = aged(service, now - seat.submitted - ran_for(seat.basis, attained), *policy_);
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

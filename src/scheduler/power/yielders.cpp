#include "scheduler/power/yielders.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace orrery {
namespace {

/// How long a bound is valid: in that time, what a job has had may grow.
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

/// A number that grows with the service: by one for each quarter of an octave, from one
/// device-second on.
std::size_t octave_of(double service) {
  constexpr int kMantissa = 50;
  constexpr std::uint64_t kOne = std::bit_cast<std::uint64_t>(1.0) >> kMantissa;
  if (service < 1) return 0;
  return std::min<std::uint64_t>((std::bit_cast<std::uint64_t>(service) >> kMantissa) - kOne, 255);
}

}  // namespace

bool Yielders::Seat::is_of(const RunningJob& job) const {
  return id == job.id && request == job.request && started == job.started && since == job.since &&
         expected_end == job.expected_end && checkpoint == job.checkpoint && done == job.done &&
         attained == job.attained && stopping == job.stopping;
}

void Yielders::forget() {
  seats_.clear();
  blocks_.clear();
  bounds_.clear();
  held_.clear();
  held_by_bound_.fill(0);
  ranks_.clear();
  elastic_ = 0;
}

void Yielders::look(const Situation& situation, const Policy& policy) {
  situation_ = &situation;
  policy_ = &policy;
  const std::size_t tenants = situation.usage->tree().size();
  if (ageing_ != policy.ageing.value() || step_ != policy.attained_step ||
      stretch_ != policy.max_stretch || plans_ != situation.changes.plans ||
      ranks_.size() != tenants) {
    forget();
  }
  ageing_ = policy.ageing.value();
  step_ = policy.attained_step;
  stretch_ = policy.max_stretch;
  plans_ = situation.changes.plans;
  ranks_.resize(tenants);
  const std::size_t size = situation.running.size();
  for (std::size_t i = size; i < seats_.size(); ++i) {
    count(seats_[i], -1);
    held_by_bound_[octave_of(bounds_[i])] -= held_[i];
  }
  seats_.resize(size);
  bounds_.resize(size);
  held_.resize(size);
  settled_.resize(size);
  is_known_.assign(size, 0);
  blocks_.resize((size + kRunningBlock - 1) / kRunningBlock);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const std::span<const std::uint64_t> counts = situation.running_changes;
    Block& block = blocks_[b];
    const std::size_t end = std::min(size, (b + 1) * kRunningBlock);
    const bool holds = block.known && !counts.empty() && block.changes == counts[b] &&
                       situation.now <= block.until;
    if (holds) continue;
    block = {counts.empty() ? 0 : counts[b], Instant::max(), true};
    for (std::size_t i = b * kRunningBlock; i < end; ++i) {
      look_at(static_cast<std::uint32_t>(i));
      block.until = std::min(block.until, seats_[i].until);
    }
  }
}

void Yielders::look_at(std::uint32_t at) {
  const RunningJob& job = situation_->running[at];
  Seat& seat = seats_[at];
  if (seat.is_of(job) && situation_->now <= seat.until) return;
  count(seat, -1);
  seat = seat_of(job);
  count(seat, 1);
  held_by_bound_[octave_of(bounds_[at])] -= held_[at];
  bounds_[at] = bound_of(job, seat);
  held_[at] = seat.devices;
  for (const PlacedGang& gang : job.gangs) {
    for (const NodeDevices& beside : gang.allocation.idle) {
      held_[at] += static_cast<std::uint32_t>(std::popcount(beside.devices));
    }
  }
  held_by_bound_[octave_of(bounds_[at])] += held_[at];
}

void Yielders::count(const Seat& seat, std::int32_t sign) {
  const auto one = static_cast<std::uint32_t>(sign);
  if (seat.elastic) elastic_ += static_cast<std::size_t>(sign);
  if (!seat.preemptible) return;
  auto& ranks = ranks_[seat.tenant.value()];
  const auto at = ranks.try_emplace(seat.rank, 0).first;
  at->second += one;
  if (at->second == 0) ranks.erase(at);
}

std::uint64_t Yielders::devices_with(double least) const {
  const auto first = held_by_bound_.begin() + static_cast<std::ptrdiff_t>(octave_of(least));
  return std::accumulate(first, held_by_bound_.end(), std::uint64_t{0});
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

// The time left shrinks as a job runs, and grows once it is beyond its length; what it has had
// grows, and the time that it has waited shrinks, by no more than the most devices that it may
// hold.
double Yielders::bound_of(const RunningJob& job, const Seat& seat) const {
  constexpr double kRounding = 1 + 1e-9;
  if (!seat.preemptible || job.checkpoint == Duration::max()) return 0;
  const double more = kBoundLasts.count_seconds() * devices_most(*job.request);
  const double attained = job.attained_at(situation_->now) + more;
  const double service =
      std::max(service_of(seat.basis, job.done_at(situation_->now), attained, *policy_),
               service_of(seat.basis, 1, attained, *policy_));
  const Duration waited = situation_->now - job.submitted - ran_for(seat.basis, attained);
  return aged(service, {waited, seat.basis.whole}, *policy_) * kRounding;
}

const Yielders::Settled& Yielders::settled(std::uint32_t at) {
  Settled& known = settled_[at];
  if (is_known_[at] != 0) return known;
  is_known_[at] = 1;
  const Seat& seat = seats_[at];
  known = {at, seat.devices, 0};
  const Instant now = situation_->now;
  if (now < seat.started + Duration::from_seconds(policy_->min_run.value())) return known;
  // Computes attained_at(), which would count the devices again.
  const double ran = now <= seat.since ? 0 : (now - seat.since).count_seconds();
  const double attained = now <= seat.since ? seat.attained : seat.attained + ran * seat.devices;
  const double service =
      service_of(seat.basis, situation_->running[at].done_at(now), attained, *policy_);
  const Duration waited = now - seat.submitted - ran_for(seat.basis, attained);
  known.service = aged(service, {waited, seat.basis.whole}, *policy_);
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

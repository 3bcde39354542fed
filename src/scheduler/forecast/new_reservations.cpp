#include "scheduler/forecast/new_reservations.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The number of jobs for which a reservation is sought, for each job that may have one.
constexpr std::uint64_t kSoughtForOne = 4;

}  // namespace

bool makes_reservations(const Policy& policy, PassKind kind) {
  switch (policy.blocked) {
    case Blocked::kStops:
    case Blocked::kSkipped:
      return false;
    case Blocked::kReservesOne:
      return true;
    case Blocked::kReserves:
      return kind == PassKind::kFull;
  }
  return false;
}

NewReservations::NewReservations(PassContext& pass, StartSearch& search, LeavingJobs& leaving,
                                 Overtaking& overtaking)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      leaving_(leaving),
      overtaking_(overtaking),
      own_(leaving.askers()) {}

void NewReservations::reserve(const QueuedJob& queued, const Refusal& refusal) {
  Timeline* timeline = pass_.fleet.timeline();
  if (timeline == nullptr || refusal.kind != RejectionKind::kBusy) return;
  const WaitingJob& job = s_.waiting[queued.at];
  const bool one = policy_.blocked == Blocked::kReservesOne;
  const bool large = devices_wanted(*job.request) >= policy_.reserve_devices;
  if (!one && !large && !overtaking_.is_pressed(job)) return;
  const std::uint64_t most = one ? 1 : policy_.reserve_jobs;
  if (needed_ >= most || sought_ >= kSoughtForOne * most) return;
  ++sought_;
  const bool needed = needs_one(queued);
  needed_ += needed ? 1 : 0;
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  const Duration length = time_left(job, s_.plans, unknown);
  std::optional<Slot> slot = timeline->earliest(
      place_try(search_.jobs(), *job.request,
                {.fit = policy_.node_fit, .siblings = search_.rules_for(job).siblings}),
      {length, queued.placement_class});
  if (!slot) return;
  if (!needed) {
    const Arrivals arrivals = arrivals_beside(queued);
    if (arrivals == Arrivals::kOvertake) return;
    Duration drain = Duration::from_seconds(kDrainOfRun * length.count_seconds());
    if (arrivals == Arrivals::kAreOvertaken) {
      drain = std::max(drain, Duration::from_seconds(policy_.min_run.value()));
    }
    if (slot->start - s_.now > drain && !wins_room_within(drain, queued)) return;
    ++needed_;
  }
  timeline->reserve(*slot, length);
  Reservation kept{job.id, slot->start, std::move(slot->gangs)};
  pass_.keep(kept);
  pass_.result.reservations.push_back(std::move(kept));
}

// A reservation keeps devices empty that jobs with less work left could use, which is little beside
// a long run. A job that may overtake others gets its turn by the order, at last because its aged
// service is 0; from then on a reservation keeps new jobs off devices whose jobs have not run long
// enough to be overtaken.
bool NewReservations::needs_one(const QueuedJob& queued) {
  if (policy_.max_stretch <= 0 || !queued.ages || !queued.run) return true;
  const WaitingJob& job = s_.waiting[queued.at];
  const bool aged = queued.key.second <= 0 || is_old(s_.now - job.submitted - queued.ran, policy_);
  return aged || overtaking_.is_pressed(job) || !may_win_room(queued);
}

bool NewReservations::may_win_room(const QueuedJob& queued) {
  if (policy_.yield_ratio == 0) return false;
  const WaitingJob& job = s_.waiting[queued.at];
  LeaverList& leavers = own_[queued.asker];
  if (leavers.under != pass_.usage.changes()) {
    leavers = {pass_.usage.changes(), {}, false, {}};
    leaving_.yielders().each_that_resumes(job.request->tenant, [&](std::uint32_t i) {
      if (overtaking_.may_be_overtaken(*job.request, i)) leavers.who.push_back(i);
    });
  }
  return leaving_.fits_without(leavers, job);
}

// Jobs of its tenant and rank count, as they were when they were submitted. A reservation is of no
// use to a gang that such jobs overtake: each time it starts, it runs for its quantum alone.
NewReservations::Arrivals NewReservations::arrivals_beside(const QueuedJob& queued) const {
  const WaitingJob& job = s_.waiting[queued.at];
  const std::int32_t rank = rank_in_tenant(*job.request, policy_);
  const double mine = queued.key.second;
  std::uint64_t devices = 0;
  std::uint64_t of_overtakers = 0;
  std::uint64_t of_overtaken = 0;
  for (const RunningJob& other : s_.running) {
    const std::uint64_t held = other.devices();
    devices += held;
    const bool compares = other.request->tenant == job.request->tenant &&
                          rank_in_tenant(*other.request, policy_) == rank;
    if (!compares) continue;
    const double theirs = service_of(service_basis(*other.request, s_.plans), 0, 0, policy_);
    if (theirs * policy_.yield_ratio <= mine) of_overtakers += held;
    if (mine * policy_.yield_ratio <= theirs) of_overtaken += held;
  }
  if (of_overtakers * 2 > devices) return Arrivals::kOvertake;
  return of_overtaken * 2 > devices ? Arrivals::kAreOvertaken : Arrivals::kNeither;
}

// The jobs that it may not overtake yet end by then or have run for their quantum.
bool NewReservations::wins_room_within(Duration drain, const QueuedJob& queued) {
  const WaitingJob& job = s_.waiting[queued.at];
  const double least = queued.key.second * policy_.yield_ratio;
  std::vector<char> leaves(s_.running.size(), 0);
  leaving_.yielders().each_settled(least, [&](const Yielders::Settled& other) {
    leaves[other.at] = overtaking_.may_be_overtaken(*job.request, other.at) ? 1 : 0;
    return least;
  });
  std::vector<std::uint32_t> leavers;
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    const RunningJob& other = s_.running[i];
    const Instant until = s_.now + drain;
    const Instant settles = other.started + Duration::from_seconds(policy_.min_run.value());
    const bool resumes = other.request->preemptible && other.checkpoint != Duration::max();
    const bool leaves_later = resumes && settles > s_.now && settles <= until &&
                              overtaking_.may_be_overtaken(*job.request, i) &&
                              aged_service(as_waiting(other, s_.now), policy_, s_) >= least;
    const bool ends = other.expected_end <= until;
    if (!pass_.is_decided(i) && (ends || leaves_later || leaves[i] != 0)) leavers.push_back(i);
  }
  return leaving_.fits_without(leavers, job);
}

}  // namespace orrery

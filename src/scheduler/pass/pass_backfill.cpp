// Slots for jobs that cannot start yet, and resizes that keep clear of them and of closures.
#include <algorithm>

#include "scheduler/pass/pass.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/job_array.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

bool is_on(const RunningJob& job, NodeId node) {
  return std::any_of(job.gangs.begin(), job.gangs.end(), [node](const PlacedGang& gang) {
    return std::any_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
                       [node](const NodeDevices& at) { return at.node == node; });
  });
}

/// The number of jobs for which a slot is sought, for each job that may have one.
constexpr std::uint64_t kSoughtForASlot = 4;

}  // namespace

bool Pass::makes_reservations() const {
  switch (policy_.blocked) {
    case Blocked::kStops:
    case Blocked::kSkipped:
      return false;
    case Blocked::kReservesOne:
      return true;
    case Blocked::kReserves:
      return kind_ == PassKind::kFull;
  }
  return false;
}

void Pass::open_timeline() {
  std::vector<Ending> endings;
  for (const RunningJob& job : s_.running) {
    for (const PlacedGang& gang : job.gangs) {
      endings.push_back({&gang.allocation, gang.host, job.expected_end});
    }
  }
  m_.timeline_.open(s_.fleet, s_.now, endings);
  timeline_open_ = true;
  for (const Closure& closure : s_.closures) {
    if (closure.to > s_.now) m_.timeline_.close(closure);
  }
  for (const Reservation& slot : result_.reservations) {
    m_.timeline_.reserve({s_.now, slot.gangs}, Duration::max());
  }
}

// Slots go to the first job of the queue, or to the first jobs that are large or would be late
// without one: other small jobs find room.
void Pass::reserve(const QueuedJob& queued, const Refusal& refusal) {
  if (!timeline_open_ || refusal.kind != RejectionKind::kBusy) return;
  const WaitingJob& job = job_of(queued);
  const bool one = policy_.blocked == Blocked::kReservesOne;
  const bool large = devices_wanted(*job.request) >= policy_.reserve_devices;
  if (!one && !large && !is_pressed(job)) return;
  const std::uint64_t most = one ? 1 : policy_.reserve_jobs;
  if (slots_ >= most || slots_sought_ >= kSoughtForASlot * most) return;
  ++slots_sought_;
  const bool needed = needs_slot(queued);
  slots_ += needed ? 1 : 0;
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  const Duration length = time_left(job, s_.plans, unknown);
  std::optional<Slot> slot = m_.timeline_.earliest(
      place_try(m_.placer_, *job.request,
                {.fit = policy_.node_fit, .siblings = rules_for(job).siblings}),
      {length, queued.room});
  if (!slot) return;
  if (!needed) {
    const Overtaking with = overtaking_by_arrivals(queued);
    if (with == Overtaking::kIsOvertaken) return;
    Duration drain = Duration::from_seconds(kDrainOfRun * length.count_seconds());
    if (with == Overtaking::kOvertakes) {
      drain = std::max(drain, Duration::from_seconds(policy_.min_run.value()));
    }
    if (slot->start - s_.now > drain && !wins_room_within(drain, queued)) return;
    ++slots_;
  }
  m_.timeline_.reserve(*slot, length);
  Reservation kept{job.id, slot->start, std::move(slot->gangs)};
  keep(kept);
  result_.reservations.push_back(std::move(kept));
}

// A slot keeps devices empty that jobs with less work left could use, which is little beside a long
// run. A job that may overtake others gets its turn by the order, at last because its aged service
// is 0; from then on a slot keeps new jobs off devices whose jobs have not run long enough to be
// overtaken.
bool Pass::needs_slot(const QueuedJob& queued) {
  if (policy_.max_stretch <= 0 || !queued.ages || !queued.run) return true;
  const WaitingJob& job = job_of(queued);
  const bool aged = queued.key.second <= 0 || is_old(s_.now - job.submitted - queued.ran, policy_);
  return aged || is_pressed(job) || !may_win_room(queued);
}

bool Pass::may_win_room(const QueuedJob& queued) {
  if (policy_.yield_ratio == 0) return false;
  const WaitingJob& job = job_of(queued);
  Leavers& leavers = askers_[queued.asker].own;
  if (leavers.under != usage_changes_) {
    leavers = {usage_changes_, {}, false, {}};
    yielders().each_that_resumes(job.request->tenant, [&](std::uint32_t i) {
      if (may_be_overtaken(*job.request, i)) leavers.who.push_back(i);
    });
  }
  return fits_without(leavers, job);
}

// Jobs of its tenant and rank count, as they were when they were submitted. A slot is of no use to
// a gang that such jobs overtake: each time it starts, it runs for its quantum alone.
Pass::Overtaking Pass::overtaking_by_arrivals(const QueuedJob& queued) const {
  const WaitingJob& job = job_of(queued);
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
  if (of_overtakers * 2 > devices) return Overtaking::kIsOvertaken;
  return of_overtaken * 2 > devices ? Overtaking::kOvertakes : Overtaking::kNeither;
}

// The jobs that it may not overtake yet end by then or have run for their quantum.
bool Pass::wins_room_within(Duration drain, const QueuedJob& queued) {
  const WaitingJob& job = job_of(queued);
  const double least = queued.key.second * policy_.yield_ratio;
  std::vector<char> leaves(s_.running.size(), 0);
  yielders().each_settled(least, [&](const Yielders::Settled& other) {
    leaves[other.at] = may_be_overtaken(*job.request, other.at) ? 1 : 0;
    return least;
  });
  Leavers leavers;
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    const RunningJob& other = s_.running[i];
    const Instant until = s_.now + drain;
    const Instant settles = other.started + Duration::from_seconds(policy_.min_run.value());
    const bool resumes = other.request->preemptible && other.checkpoint != Duration::max();
    const bool leaves_later = resumes && settles > s_.now && settles <= until &&
                              may_be_overtaken(*job.request, i) &&
                              aged_service(as_waiting(other, s_.now), policy_, s_) >= least;
    const bool ends = other.expected_end <= until;
    if (stopped_[i] == 0 && (ends || leaves_later || leaves[i] != 0)) leavers.who.push_back(i);
  }
  const bool fits = fits_without(leavers, job);
  left_out_ = nullptr;  // `leavers` goes out of scope
  return fits;
}

// Searches the job's own devices and free ones: other victims hold theirs until they have left.
std::optional<Pass::Found> Pass::smaller_of(const RunningJob& job,
                                            std::span<const PlacedGang> kept) const {
  if (job.gangs.size() != 1 || keeps_distance(*job.request)) return std::nullopt;
  const PlacedGang& old = job.gangs.front();
  const RoleRequest& role = job.request->roles[old.role];
  const GangRequest& has = role.options[old.option].gang;
  const auto is_less = [&has](const GangOption& option) {
    return option.gang.type == has.type && option.gang.devices < has.devices;
  };
  if (std::none_of(role.options.begin(), role.options.end(), is_less)) return std::nullopt;
  FleetOverlay mine(m_.now_->view());
  give_back(mine, std::span<const PlacedGang>(job.gangs));
  for (const PlacedGang& gang : kept) mine.hide(gang.allocation.ranks);
  hide_closed(mine, job, Instant::max());
  const FleetView view = mine.view();
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangRequest& gang = role.options[i].gang;
    if (!is_less(role.options[i])) continue;
    AllocationOrRefusal placed = m_.placer_.placer().place(view, gang);
    if (!placed) continue;
    FoundOrRefusal found = with_terms(view, as_waiting(job, s_.now),
                                      {PlacedGang{old.role, i, *std::move(placed), gang.host}});
    if (found) return *std::move(found);
  }
  return std::nullopt;
}

template <class Visit>
void Pass::for_each_closed(const RunningJob& job, Instant end, const Visit& visit) const {
  for (const Closure& closure : s_.closures) {
    if (closure.from >= end || closure.to <= s_.now) continue;
    for (const NodeDevices& at : closure.nodes) {
      if (!is_on(job, at.node)) visit(at);
    }
  }
}

void Pass::hide_closed(FleetOverlay& fleet, const RunningJob& job, Instant end) const {
  for_each_closed(job, end, [&](const NodeDevices& at) { fleet.hide({&at, 1}); });
}

bool Pass::closes(const PlacedGang& there, const RunningJob& job, Instant end) const {
  bool closes = false;
  for_each_closed(job, end, [&](const NodeDevices& closed) {
    for (const NodeDevices& at : there.allocation.ranks) closes = closes || at.node == closed.node;
  });
  return closes;
}

// A victim that can go on with fewer devices does so at once, on the rest of its devices or
// elsewhere.
std::optional<PlacedGang> Pass::shrink(const RunningJob& job, JobId in_favour_of,
                                       std::span<const PlacedGang> kept) {
  leave_power(job);
  std::optional<Found> found = smaller_of(job, kept);
  if (!found) {
    for (std::size_t i = 0; i < job.gangs.size(); ++i) enter_power(job.gangs[i], terms_now(job, i));
    return std::nullopt;
  }
  PlacedGang smaller = found->gangs.front();
  enter_power(smaller, found->terms.front());
  const GangRequest& gang = job.request->roles[smaller.role].options[smaller.option].gang;
  apply({job.request->tenant, gang.type, rank_of(*job.request),
         static_cast<std::int64_t>(gang.devices)});
  result_.decisions.emplace_back(ResizeJob{job.id, std::move(found->gangs), std::move(found->terms),
                                           in_favour_of, 0,
                                           job.request->restart.count_seconds() * gang.devices});
  return smaller;
}

// The first slot creates the shadow, so earlier starts of this pass are removed from it here.
void Pass::keep(const Reservation& slot) {
  if (!m_.reserved_->any()) {
    for (const Decision& decision : result_.decisions) {
      if (const auto* start = std::get_if<StartJob>(&decision)) edit_reserved().cover(start->gangs);
    }
  }
  edit_reserved().add(slot);
}

// No other job gets the free devices of the gang in this pass.
void Pass::keep_from_others(const PlacedGang& gang) {
  hidden_ = true;
  edit_now().hide(gang.allocation.ranks);
}

}  // namespace orrery

#include "scheduler/forecast/start_forecast.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/numbers/distribution.hpp"
#include "scheduler/forecast/forecast_setup.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/fair_order.hpp"

namespace orrery {
namespace {

/// Jobs considered in all futures together; beyond that, time advances in longer steps.
constexpr std::uint64_t kWorkMost = 200'000;
constexpr double kStep = 0.02;  ///< of the time since now: ends within it are handled together
constexpr double kLongStep = 0.1;
constexpr double kHorizon = 400.0 * 86'400;
/// Room for newcomers that wait, in addition to twice the number of jobs that wait now.
constexpr std::size_t kRoomForNew = 256;
/// The most reservations that are counted for a type.
constexpr std::size_t kSlotsMost = 8;

bool resumes(const JobRequest& job) {
  return job.preemptible && job.checkpoint_interval != Duration::max();
}

/// One simulated future, from now on.
class PlayedFuture {
 public:
  PlayedFuture(const ForecastSetup& setup, std::uint32_t index);

  /// Seconds until the job starts; infinity: not within the horizon.
  [[nodiscard]] double play();
  /// The type of the first gang of the job for which the future was played.
  [[nodiscard]] FleetTypeId on() const { return on_; }

 private:
  struct Entry {
    OrderKey key;
    const ForecastJob* job = nullptr;
    double factor = 1;  ///< run time over the expected one
    bool started = false;
  };
  struct Run {
    double end = kNeverEnds;
    double believed = kNeverEnds;
    std::uint32_t first_piece = 0;
    std::uint32_t pieces = 0;
    TenantId tenant;
    std::int32_t rank = 0;
    bool awaited = false;
    bool resumes = false;
  };
  /// Kept for a blocked job: from `at` on all devices of the type but `extra`.
  struct CountedSlot {
    double at = 0;
    std::int64_t extra = 0;
  };
  enum class Turn { kNext, kStop };

  [[nodiscard]] double part(std::uint32_t stratum, std::uint32_t stride) const;
  void choose_newcomers();
  void enter_runs();
  void add_run(Run run);
  void let_end();
  void let_come();
  void count(const Run& run, std::int64_t sign);
  void pass();
  void pass_by_tenants(std::size_t first, std::size_t end);
  [[nodiscard]] Turn consider(Entry& entry);
  [[nodiscard]] bool try_start(Entry& entry);
  [[nodiscard]] bool may_use(const Entry& entry, const ForecastOption& option, std::int64_t more);
  [[nodiscard]] bool beside_slots(const ForecastOption& option) const;
  void keep_slot(const Entry& entry);
  [[nodiscard]] bool needs_slot(const Entry& entry) const;
  /// Devices of a type held by the jobs of a tenant that resume from a checkpoint.
  [[nodiscard]] std::size_t resuming_of(TenantId tenant, FleetTypeId type) const {
    return tenant.value() * capacity_.size() + type.value();
  }
  void count_resuming(const Run& run, std::int64_t sign);
  [[nodiscard]] std::optional<CountedSlot> slot_for(const GangRequest& gang, std::uint32_t gangs);
  [[nodiscard]] bool reserves() const {
    return policy_.blocked == Blocked::kReservesOne || policy_.blocked == Blocked::kReserves;
  }

  const ForecastSetup& setup_;
  const Policy& policy_;
  const std::uint32_t index_;
  Rng rng_;
  CountedFleet fleet_;
  std::optional<TenantUsage> usage_;
  std::vector<std::int64_t> capacity_;
  std::vector<Entry> queue_;
  std::vector<Run> runs_;
  std::vector<CountedPiece> pieces_;
  std::vector<std::pair<double, std::uint32_t>> ends_;  ///< a heap, the earliest first
  std::vector<std::set<std::pair<double, std::uint32_t>>> believed_;  ///< by type
  std::vector<std::vector<CountedSlot>> slots_;                       ///< by type
  std::vector<std::int64_t> kept_;                                    ///< by type
  std::vector<std::int64_t> resuming_;                                ///< by resuming_of()
  std::vector<std::uint64_t> no_room_;  ///< by placement class, the pass that found no room
  std::vector<TenantId> changed_;       ///< tenants, since the last look
  std::uint64_t passes_ = 0;
  std::uint64_t considered_ = 0;
  std::uint32_t kept_slots_ = 0;
  std::uint32_t awaited_ = 0;
  std::uint32_t came_ = 0;
  double now_ = 0;
  double next_new_ = kNeverEnds;
  double rate_ = 0;  ///< newcomers a second
  bool refused_for_room_ = false;
  bool started_ = false;
  FleetTypeId on_;
};

PlayedFuture::PlayedFuture(const ForecastSetup& setup, std::uint32_t index)
    : setup_(setup),
      policy_(setup.policy()),
      index_(index),
      rng_(Rng::stream(index, "future")),
      fleet_(setup.fleet()),
      pieces_(setup.pieces()),
      no_room_(setup.placement_classes() + 1, 0) {
  const Situation& s = setup.situation();
  const Topology& topology = s.fleet.topology();
  if (s.usage != nullptr) usage_ = *s.usage;
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    capacity_.push_back(topology.device_count(Topology::root(), FleetTypeId(t)));
  }
  believed_.resize(capacity_.size());
  slots_.resize(capacity_.size());
  kept_.resize(capacity_.size());
  for (const ForecastJob& job : setup.queue()) {
    const UncertainRun run{.expected = 1, .lasted = 0, .sigma = policy_.estimate_sigma};
    queue_.push_back({job.key, &job, time_left(run, part(job.stratum, job.stride))});
  }
  enter_runs();
  choose_newcomers();
}

// New jobs arrive at the rate of the latest arrivals that are still present.
void PlayedFuture::choose_newcomers() {
  constexpr std::size_t kLeast = 8;
  const std::vector<ForecastJob>& latest = setup_.newcomers();
  if (latest.size() < kLeast) return;
  const Instant first = latest.back().job.submitted;
  const double window = (setup_.situation().now - first).count_seconds();
  if (window <= 0) return;
  rate_ = static_cast<double>(latest.size()) / window;
  next_new_ = Exponential{rate_}.sample(rng_);
}

// Over all futures each stratum occurs once: strides and the number of futures have no common
// divisor.
double PlayedFuture::part(std::uint32_t stratum, std::uint32_t stride) const {
  const std::uint32_t n = setup_.futures();
  return ((stratum + stride * index_) % n + 0.5) / n;
}

void PlayedFuture::enter_runs() {
  runs_.reserve(setup_.runs().size() * 2);
  for (const ForecastRun& from : setup_.runs()) {
    Run run{.believed = from.believed,
            .first_piece = from.first_piece,
            .pieces = from.pieces,
            .tenant = from.tenant,
            .rank = from.rank,
            .awaited = from.awaited,
            .resumes = from.resumes};
    if (from.length.expected < kNeverEnds) {
      run.end = std::min(from.limit, time_left(from.length, part(from.stratum, from.stride)));
    }
    awaited_ += run.awaited ? 1 : 0;
    add_run(run);
    count_resuming(run, 1);
  }
}

void PlayedFuture::add_run(Run run) {
  const auto at = static_cast<std::uint32_t>(runs_.size());
  runs_.push_back(run);
  if (run.end < kNeverEnds) {
    ends_.emplace_back(run.end, at);
    std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
  }
  if (!reserves() || run.believed == kNeverEnds || run.pieces == 0) return;
  believed_[fleet_.type_of(pieces_[run.first_piece].node).value()].emplace(run.believed, at);
}

void PlayedFuture::count_resuming(const Run& run, std::int64_t sign) {
  if (policy_.max_stretch <= 0 || !run.resumes) return;
  for (std::uint32_t i = 0; i < run.pieces; ++i) {
    const CountedPiece& piece = pieces_[run.first_piece + i];
    const std::size_t at = resuming_of(run.tenant, fleet_.type_of(piece.node));
    if (at >= resuming_.size()) resuming_.resize(at + 1);
    resuming_[at] += sign * piece.devices;
  }
}

void PlayedFuture::count(const Run& run, std::int64_t sign) {
  count_resuming(run, sign);
  if (!usage_) return;
  for (std::uint32_t i = 0; i < run.pieces; ++i) {
    const CountedPiece& piece = pieces_[run.first_piece + i];
    usage_->apply({run.tenant, fleet_.type_of(piece.node), run.rank, sign * piece.devices});
  }
  changed_.push_back(run.tenant);
}

void PlayedFuture::let_end() {
  while (!ends_.empty() && ends_.front().first <= now_) {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    const std::uint32_t at = ends_.back().second;
    ends_.pop_back();
    const Run& run = runs_[at];
    for (std::uint32_t i = 0; i < run.pieces; ++i) fleet_.give_back(pieces_[run.first_piece + i]);
    count(run, -1);
    awaited_ -= run.awaited ? 1 : 0;
    if (!reserves() || run.pieces == 0) continue;
    believed_[fleet_.type_of(pieces_[run.first_piece].node).value()].erase({run.believed, at});
  }
}

void PlayedFuture::let_come() {
  constexpr std::uint32_t kNewIds = 0x80000000;  // behind all known
  const std::size_t most = setup_.queue().size() * 2 + kRoomForNew;
  const bool fair = policy_.order == QueueOrder::kFair;
  const auto before = [fair](const Entry& a, const Entry& b) {
    if (fair && a.job->serves != b.job->serves) return a.job->serves;
    return a.key < b.key;
  };
  for (; next_new_ <= now_; next_new_ += Exponential{rate_}.sample(rng_)) {
    if (queue_.size() >= most) continue;
    const ForecastJob& job = setup_.newcomers()[rng_.below(setup_.newcomers().size())];
    Entry entry{job.key, &job, Lognormal{0, policy_.estimate_sigma}.sample(rng_)};
    entry.key.submitted = setup_.situation().now + Duration::from_seconds(next_new_);
    entry.key.id = JobId(kNewIds + came_++);
    queue_.insert(std::upper_bound(queue_.begin(), queue_.end(), entry, before), entry);
  }
}

double PlayedFuture::play() {
  const std::uint64_t work = kWorkMost / setup_.futures();
  while (!started_) {
    const double ends = ends_.empty() ? kNeverEnds : ends_.front().first;
    const double next = std::min(ends, next_new_);
    if (next > kHorizon || considered_ > work * 4) return kNeverEnds;
    const double before = now_;
    now_ = std::max(next, now_ * (1 + (considered_ < work ? kStep : kLongStep)));
    if (usage_) usage_->advance(Duration::from_seconds(now_ - before));
    let_end();
    let_come();
    pass();
  }
  return now_;
}

void PlayedFuture::pass() {
  ++passes_;
  kept_slots_ = 0;
  for (auto& slots : slots_) slots.clear();
  std::fill(kept_.begin(), kept_.end(), 0);
  if (policy_.order == QueueOrder::kFair && usage_) {
    const auto others = std::partition_point(queue_.begin(), queue_.end(),
                                             [](const Entry& entry) { return entry.job->serves; });
    const auto services = static_cast<std::size_t>(others - queue_.begin());
    pass_by_tenants(0, services);
    pass_by_tenants(services, queue_.size());
  } else {
    for (Entry& entry : queue_) {
      if (consider(entry) == Turn::kStop) break;
    }
  }
  std::erase_if(queue_, [](const Entry& entry) { return entry.started; });
}

void PlayedFuture::pass_by_tenants(std::size_t first, std::size_t end) {
  if (first == end || started_) return;
  std::vector<std::vector<std::size_t>> queues(usage_->tree().size());
  std::vector<Waiting> wanted;
  for (std::size_t at = first; at < end; ++at) {
    const ForecastJob& job = *queue_[at].job;
    auto& queue = queues[job.job.request->tenant.value()];
    if (queue.empty()) {
      wanted.push_back(
          {job.job.request->tenant, job.job.request->roles.front().options.front().gang.type});
    }
    queue.push_back(at);
  }
  changed_.clear();
  FairOrder fair(*usage_, capacity_, wanted);
  std::vector<std::size_t> next(queues.size());
  while (const std::optional<TenantId> tenant = fair.next()) {
    const std::vector<std::size_t>& queue = queues[tenant->value()];
    std::size_t& at = next[tenant->value()];
    if (consider(queue_[queue[at++]]) == Turn::kStop) return;
    for (const TenantId changed : changed_) fair.usage_changed(changed);
    changed_.clear();
    if (at == queue.size()) fair.exhausted(*tenant);
  }
}

PlayedFuture::Turn PlayedFuture::consider(Entry& entry) {
  ++considered_;
  const ForecastJob& job = *entry.job;
  const bool asked = entry.key.id == setup_.ask().job;
  std::uint64_t& no_room = no_room_[job.placement_class];
  if (no_room != passes_ && (!asked || awaited_ == 0)) {
    refused_for_room_ = true;
    if (try_start(entry)) {
      started_ = started_ || asked;
      return asked ? Turn::kStop : Turn::kNext;
    }
    if (refused_for_room_ && !asked) no_room = passes_;
  }
  if (policy_.blocked == Blocked::kStops) return Turn::kStop;
  if (reserves()) keep_slot(entry);
  return Turn::kNext;
}

bool PlayedFuture::may_use(const Entry& entry, const ForecastOption& option, std::int64_t more) {
  const ForecastAsk& ask = setup_.ask();
  const FleetTypeId type = option.gang->type;
  const bool declined = entry.key.id == ask.job && ask.declined == type &&
                        now_ < (ask.declined_until - setup_.situation().now).count_seconds();
  const bool allowed = policy_.quotas != Quotas::kHeld || !usage_ ||
                       usage_->room(entry.job->job.request->tenant, type).devices >= more;
  if (!declined && allowed && beside_slots(option)) return true;
  refused_for_room_ = false;
  return false;
}

bool PlayedFuture::beside_slots(const ForecastOption& option) const {
  const auto& slots = slots_[option.gang->type.value()];
  return std::all_of(slots.begin(), slots.end(), [&](const CountedSlot& slot) {
    return now_ + option.seconds <= slot.at || slot.extra >= option.gang->devices;
  });
}

bool PlayedFuture::try_start(Entry& entry) {
  const ForecastJob& job = *entry.job;
  const std::size_t before = pieces_.size();
  std::map<FleetTypeId, std::int64_t> held;
  double seconds = 0;
  for (const ForecastRole& role : job.roles) {
    for (std::uint32_t gang = 0; gang < role.gangs; ++gang) {
      const ForecastOption* taken = nullptr;
      for (const ForecastOption& option : role.options) {
        std::int64_t& of_type = held[option.gang->type];
        if (!may_use(entry, option, of_type + option.gang->devices)) continue;
        if (!fleet_.take(*option.gang, pieces_)) continue;
        of_type += option.gang->devices;
        taken = &option;
        break;
      }
      if (taken == nullptr) {
        for (std::size_t i = before; i < pieces_.size(); ++i) fleet_.give_back(pieces_[i]);
        pieces_.resize(before);
        return false;
      }
      seconds = std::max(seconds, taken->seconds);
    }
  }
  on_ = fleet_.type_of(pieces_[before].node);
  for (const auto& [type, devices] : held) {
    for (CountedSlot& slot : slots_[type.value()]) {
      if (now_ + seconds > slot.at) slot.extra -= devices;
    }
  }
  Run run{.end = now_ + std::min(seconds * entry.factor, job.limit),
          .believed = now_ + seconds,
          .first_piece = static_cast<std::uint32_t>(before),
          .pieces = static_cast<std::uint32_t>(pieces_.size() - before),
          .tenant = job.job.request->tenant,
          .rank = rank_of(*job.job.request),
          .resumes = resumes(*job.job.request)};
  add_run(run);
  count(run, 1);
  entry.started = true;
  return true;
}

void PlayedFuture::keep_slot(const Entry& entry) {
  const ForecastJob& job = *entry.job;
  const bool one = policy_.blocked == Blocked::kReservesOne;
  if (!one && devices_wanted(*job.job.request) < policy_.reserve_devices) return;
  if (kept_slots_ >= (one ? 1 : policy_.reserve_jobs)) return;
  const bool needed = needs_slot(entry);
  const ForecastRole& role = job.roles.front();
  std::optional<CountedSlot> best;
  const GangRequest* gang = nullptr;
  double run = 0;
  for (const ForecastOption& option : role.options) {
    if (slots_[option.gang->type.value()].size() >= kSlotsMost) continue;
    const std::optional<CountedSlot> slot = slot_for(*option.gang, role.gangs);
    if (!slot || (best && best->at <= slot->at)) continue;
    best = slot;
    gang = option.gang;
    run = option.seconds;
  }
  kept_slots_ += needed ? 1 : 0;
  if (!best) return;
  if (!needed) {
    if (best->at - now_ > kDrainOfRun * run) return;
    ++kept_slots_;
  }
  slots_[gang->type.value()].push_back(*best);
  kept_[gang->type.value()] += std::int64_t{gang->devices} * role.gangs;
}

// As NewReservations::needs_one(), by numbers of devices of one role, where all jobs of its tenant
// that go on from a checkpoint count as jobs that it may overtake.
bool PlayedFuture::needs_slot(const Entry& entry) const {
  const ForecastJob& job = *entry.job;
  const WaitingJob& it = job.job;
  if (policy_.max_stretch <= 0 || policy_.yield_ratio == 0 || !by_service(*it.request, policy_)) {
    return true;
  }
  const ServiceBasis basis = service_basis(*it.request, setup_.situation().plans);
  const Duration waited = setup_.situation().now + Duration::from_seconds(now_) -
                          entry.key.submitted - ran_for(basis, it.attained);
  if (!basis.whole || is_old(waited, policy_)) return true;
  if (aged(1, {waited, basis.whole}, policy_) <= 0) return true;
  const ForecastRole& role = job.roles.front();
  return std::none_of(role.options.begin(), role.options.end(), [&](const ForecastOption& option) {
    const FleetTypeId type = option.gang->type;
    const std::size_t at = resuming_of(it.request->tenant, type);
    const std::int64_t theirs = at < resuming_.size() ? resuming_[at] : 0;
    return fleet_.free(type) + theirs >= std::int64_t{option.gang->devices} * role.gangs;
  });
}

// When enough devices are free beside earlier reservations, by the ends that the scheduler expects.
std::optional<PlayedFuture::CountedSlot> PlayedFuture::slot_for(const GangRequest& gang,
                                                                std::uint32_t gangs) {
  const std::size_t type = gang.type.value();
  const std::int64_t wanted = std::int64_t{gang.devices} * gangs + kept_[type];
  std::int64_t free = fleet_.free(gang.type);
  CountedSlot slot{now_ + 1, free - wanted};
  for (auto at = believed_[type].begin(); free < wanted; ++at) {
    if (at == believed_[type].end()) return std::nullopt;
    const Run& run = runs_[at->second];
    for (std::uint32_t i = 0; i < run.pieces; ++i) free += pieces_[run.first_piece + i].devices;
    slot = {std::max(now_ + 1, at->first), free - wanted};
  }
  return slot;
}

}  // namespace

std::optional<LikelyStart> forecast_start(const Situation& situation, const Policy& policy,
                                          const PlaceTree& tree, const ForecastAsk& ask) {
  const ForecastSetup setup(situation, policy, tree, ask);
  if (!setup.sees_job()) return std::nullopt;
  std::vector<double> starts;
  std::map<FleetTypeId, std::uint32_t> types;
  for (std::uint32_t i = 0; i < setup.futures(); ++i) {
    PlayedFuture future(setup, i);
    starts.push_back(future.play());
    if (starts.back() < kNeverEnds) ++types[future.on()];
  }
  std::sort(starts.begin(), starts.end());
  // The real start comes before the k-th of n equally likely futures with probability k / (n + 1).
  const auto quantile = [&](double part) {
    const auto k = static_cast<std::size_t>(part * (setup.futures() + 1) + 0.999);
    const double seconds = starts[std::min(k, starts.size()) - 1];
    return seconds < kNeverEnds ? Duration::from_seconds(seconds) : Duration::max();
  };
  LikelyStart likely{quantile(0.5), quantile(0.9)};
  if (likely.median == Duration::max()) return std::nullopt;
  likely.on = std::max_element(types.begin(), types.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->first;
  return likely;
}

}  // namespace orrery

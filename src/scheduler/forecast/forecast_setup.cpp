#include "scheduler/forecast/forecast_setup.hpp"

#include <algorithm>
#include <set>

#include "scheduler/place/job_placer.hpp"
#include "scheduler/price/gang_pricing.hpp"

namespace orrery {
namespace {

/// The most jobs present that came last, which stand for those to come.
constexpr std::size_t kLatestMost = 64;

std::uint32_t futures_for(std::size_t jobs) {
  if (jobs <= 256) return 59;
  return jobs <= 1024 ? 31 : 19;
}

}  // namespace

ForecastSetup::ForecastSetup(const Situation& situation, const Policy& policy,
                             const PlaceTree& tree, const ForecastAsk& ask)
    : s_(situation),
      policy_(policy),
      ask_(ask),
      fleet_(situation.fleet, tree),
      rng_(Rng::stream(1, "forecast")),
      futures_(futures_for(situation.waiting.size() + situation.running.size())) {
  open_shared();
  add_queue();
  add_runs();
  add_newcomers();
  choose_awaited();
}

// Only if the fleet's numbers show room although places have none, the jobs in the way are awaited.
void ForecastSetup::choose_awaited() {
  CountedFleet fleet = fleet_;
  std::vector<CountedPiece> pieces;
  const auto fits = [&](const ForecastRole& role) {
    const auto takes = [&](const ForecastOption& option) {
      return option.gang->type != ask_.declined && fleet.take(*option.gang, pieces);
    };
    for (std::uint32_t gang = 0; gang < role.gangs; ++gang) {
      if (std::none_of(role.options.begin(), role.options.end(), takes)) return false;
    }
    return true;
  };
  const auto job = std::find_if(queue_.begin(), queue_.end(),
                                [&](const ForecastJob& each) { return each.job.id == ask_.job; });
  if (job != queue_.end() && std::all_of(job->roles.begin(), job->roles.end(), fits)) return;
  for (ForecastRun& run : runs_) run.awaited = false;
}

// Adds the free parts of shared devices.
void ForecastSetup::open_shared() {
  if (!s_.fleet.any_shared()) return;
  std::set<DeviceId> seen;
  for (const RunningJob& job : s_.running) {
    for (const PlacedGang& gang : job.gangs) {
      if (gang.allocation.share == kWholeDevice) continue;
      for (const NodeDevices& at : gang.allocation.ranks) {
        const DeviceId device = detail::shared_device(s_.fleet.topology(), at);
        if (!seen.insert(device).second) continue;
        const std::int32_t left = kWholeDevice - s_.fleet.shared(device);
        fleet_.give_back({at.node, std::max(0, left), 0});
      }
    }
  }
}

std::vector<ForecastOption> ForecastSetup::options_of(const WaitingJob& job, std::uint32_t index) {
  const RoleRequest& role = job.request->roles[index];
  std::vector<std::pair<std::int64_t, ForecastOption>> found;
  const PriceContext context{s_, policy_, s_.fleet, nullptr};
  const bool cheapest = policy_.choice == OptionChoice::kCheapest && role.options.size() > 1;
  for (std::uint32_t i = 0; i < role.options.size(); ++i) {
    const GangOption& option = role.options[i];
    const auto whole = whole_run_time(*job.request, role, option, {best_plan(s_.plans, option), 1});
    double seconds = whole ? whole->count_seconds() : policy_.unknown_run.value();
    if (!whole && job.request->kind == JobKind::kServe) seconds = kNeverEnds;
    std::int64_t price = 0;
    if (cheapest) price = ideal_price(context, job, {index, i, Duration()}).total();
    found.push_back({price, {&option.gang, seconds * (1 - job.done)}});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ForecastOption> options;
  options.reserve(found.size());
  for (const auto& each : found) options.push_back(each.second);
  return options;
}

ForecastJob ForecastSetup::of(const WaitingJob& job) {
  ForecastJob out{.job = job, .key = key_of(job, policy_, s_)};
  out.serves = job.request->kind == JobKind::kServe;
  if (job.request->time_limit) out.limit = job.request->time_limit->count_seconds();
  const ClassId id = job.request->class_id;
  if (id.valid()) {
    if (id.value() >= placement_class_of_.size()) placement_class_of_.resize(id.value() + 1);
    std::uint32_t& placement = placement_class_of_[id.value()];
    if (placement == 0) placement = ++placement_classes_;
    out.placement_class = placement;
  } else {
    out.placement_class = ++placement_classes_;
  }
  out.stratum = static_cast<std::uint32_t>(rng_.below(futures_));
  out.stride = static_cast<std::uint32_t>(1 + rng_.below(futures_ - 1));
  for (const std::uint32_t role : JobPlacer::order_of(*job.request)) {
    out.roles.push_back({job.request->roles[role].gangs, options_of(job, role)});
  }
  return out;
}

// Adds waiting jobs in the order of the queue; services come first where tenants take turns.
void ForecastSetup::add_queue() {
  std::vector<std::uint32_t> order = in_order(s_, policy_);
  if (policy_.order == QueueOrder::kFair) {
    std::stable_partition(order.begin(), order.end(), [&](std::uint32_t at) {
      return s_.waiting[at].request->kind == JobKind::kServe;
    });
  }
  order.resize(std::min(order.size(), kJobsMost));
  for (const std::uint32_t at : order) {
    queue_.push_back(of(s_.waiting[at]));
    sees_job_ = sees_job_ || s_.waiting[at].id == ask_.job;
  }
  // A job that overtakes others because of a deadline gets a key just before theirs.
  for (std::size_t i = queue_.size(); i-- > 1;) {
    const OrderKey& next = queue_[i].key;
    if (queue_[i - 1].serves != queue_[i].serves || queue_[i - 1].key < next) continue;
    const Instant before = next.submitted - Duration::nanoseconds(1);
    queue_[i - 1].key = {next.first, next.second, before, queue_[i - 1].key.id};
  }
}

double ForecastSetup::expected_of(const JobRequest& job) const {
  const WaitingJob whole{.id = {}, .request = &job, .submitted = {}};
  const Duration unknown = Duration::from_seconds(policy_.unknown_run.value());
  return time_left(whole, s_.plans, unknown).count_seconds();
}

// A run of unknown length is expected to last as long again as it has run.
void ForecastSetup::add_runs() {
  for (const RunningJob& job : s_.running) {
    ForecastRun run{.tenant = job.request->tenant, .rank = rank_of(*job.request)};
    run.length.sigma = policy_.estimate_sigma;
    run.length.lasted = std::max(0.0, (s_.now - job.started).count_seconds());
    const bool told = job.expected_end != Instant::max();
    if (told) {
      run.length.expected = std::max(1.0, (job.expected_end - job.started).count_seconds());
      run.believed = std::max(1.0, (job.expected_end - s_.now).count_seconds());
    } else if (job.request->kind == JobKind::kServe) {
      run.length.expected = kNeverEnds;
    } else if (job.request->estimate || job.request->time_limit) {
      run.length.expected = expected_of(*job.request) * (1 - job.done);
    } else {
      run.length.expected = std::max(policy_.unknown_run.value(), 2 * run.length.lasted);
    }
    if (job.stopping) run.length = {.expected = 1, .lasted = 0, .sigma = 0};
    if (job.request->time_limit) {
      run.limit = std::max(1.0, job.request->time_limit->count_seconds() - run.length.lasted);
    }
    run.first_piece = static_cast<std::uint32_t>(pieces_.size());
    for (const PlacedGang& gang : job.gangs) CountedFleet::append(gang, pieces_);
    run.pieces = static_cast<std::uint32_t>(pieces_.size()) - run.first_piece;
    run.awaited = std::find(ask_.after.begin(), ask_.after.end(), job.id) != ask_.after.end();
    run.resumes = job.request->preemptible && job.checkpoint != Duration::max() && !job.stopping;
    run.stratum = static_cast<std::uint32_t>(rng_.below(futures_));
    run.stride = static_cast<std::uint32_t>(1 + rng_.below(futures_ - 1));
    runs_.push_back(run);
  }
}

void ForecastSetup::add_newcomers() {
  std::vector<WaitingJob> latest(s_.waiting.begin(), s_.waiting.end());
  for (const RunningJob& job : s_.running) latest.push_back({job.id, job.request, job.submitted});
  const std::size_t count = std::min(latest.size(), kLatestMost);
  const auto later = [](const WaitingJob& a, const WaitingJob& b) {
    return a.submitted != b.submitted ? a.submitted > b.submitted : a.id > b.id;
  };
  std::partial_sort(latest.begin(), latest.begin() + static_cast<std::ptrdiff_t>(count),
                    latest.end(), later);
  latest.resize(count);
  for (WaitingJob& job : latest) {
    job.done = job.attained = 0;
    newcomers_.push_back(of(job));
  }
}

}  // namespace orrery

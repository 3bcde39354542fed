#include "scheduler/tenants/queue_order.hpp"

#include <algorithm>
#include <cmath>

#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/finish_time.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {
namespace {

double attained_queue(double attained, const Policy& policy) {
  const auto& limits = policy.queue_limits;
  return static_cast<double>(std::upper_bound(limits.begin(), limits.end(), attained) -
                             limits.begin());
}

/// Device-seconds at which the class that contains `attained` ends (Policy::attained_step).
double end_of_class(double attained, double step) {
  constexpr double kFirst = 3600;
  if (step <= 1 || !std::isfinite(attained)) return attained;
  double end = kFirst;
  while (end <= attained) end *= step;
  return end;
}

/// Jobs whose deadlines are promised, then those whose deadlines can be, then all others.
double deadline_class(const WaitingJob& job, const Situation& situation) {
  if (!may_be_promised(job, situation)) return 2;
  const DeviceHistory* history = situation.history;
  const bool promised =
      history != nullptr && std::ranges::binary_search(history->share_period().jobs, job.id);
  return promised ? 0 : 1;
}

double first_key(const WaitingJob& job, const Policy& policy, const Situation& situation) {
  const PlanTable* plans = situation.plans;
  const auto left = [&] {
    return time_left(job, plans, Duration::from_seconds(policy.unknown_run.value()))
        .count_seconds();
  };
  switch (policy.order) {
    case QueueOrder::kSubmitted:
      return 0;
    case QueueOrder::kPriority:
      return -static_cast<double>(job.request->priority);
    case QueueOrder::kShortest: {
      WaitingJob whole = job;
      whole.done = 0;
      return time_left(whole, plans, Duration::from_seconds(policy.unknown_run.value()))
          .count_seconds();
    }
    case QueueOrder::kRemaining:
      return left();
    case QueueOrder::kRemainingService:
      return left() * devices_wanted(*job.request);
    case QueueOrder::kAttained:
      return job.attained;
    case QueueOrder::kAttainedQueues:
      return attained_queue(job.attained, policy);
    case QueueOrder::kMaxMin:
    case QueueOrder::kGoodput:
      return job.attained / devices_wanted(*job.request);
    case QueueOrder::kDeadlineShares:
      return deadline_class(job, situation);
    case QueueOrder::kFinishTime:
      return -finish_time_fairness(job, policy, situation);
    case QueueOrder::kFair:
      return -static_cast<double>(rank_in_tenant(*job.request, policy));
  }
  return 0;
}

}  // namespace

std::int32_t rank_of(const JobRequest& job) {
  constexpr std::int32_t kClass = 10'000;  // wider than all priorities
  switch (job.kind) {
    case JobKind::kServe:
      return kClass + job.priority;
    case JobKind::kTrain:
    case JobKind::kFineTune:
      return job.priority;
    case JobKind::kBatch:
      return (job.preemptible ? -kClass : 0) + job.priority;
  }
  return job.priority;
}

std::int32_t rank_in_tenant(const JobRequest& job, const Policy& policy) {
  const bool by_service = policy.inside == TenantOrder::kService && job.kind == JobKind::kBatch;
  return by_service ? job.priority : rank_of(job);
}

ServiceBasis service_basis(const JobRequest& job, const PlanTable* plans) {
  constexpr double kBatch = 2;
  return {known_whole_time(job, plans), devices_wanted(job),
          rank_of(job) < job.priority ? kBatch : 1};
}

double service_of(const ServiceBasis& basis, double done, double attained, const Policy& policy) {
  if (!basis.whole) return end_of_class(attained, policy.attained_step) * basis.weight;
  Duration left = Duration::from_seconds(basis.whole->count_seconds() * (1 - done));
  if (done >= 1 && policy.max_stretch > 0) {
    left = std::max(Duration(), ran_for(basis, attained) - *basis.whole);
  }
  return left.count_seconds() * basis.devices * basis.weight;
}

Duration ran_for(const ServiceBasis& basis, double attained) {
  return Duration::from_seconds(attained / std::max(basis.devices, 1U));
}

double aged(double service, const JobAge& age, const Policy& policy) {
  const double waited = std::max(Duration(), age.waited).count_seconds();
  if (policy.max_stretch > 0 && age.run) {
    const double run = age.run->count_seconds();
    if (waited + run >= policy.max_stretch * run) return 0;
    const double part = waited / (run * policy.max_stretch * kHalfOfStretch);
    service /= 1 + part * part;
  }
  const double ageing = policy.ageing.value();
  if (ageing <= 0) return service;
  const double part = waited / ageing;
  return service / (1 + part * part);
}

bool is_old(Duration waited, const Policy& policy) {
  return policy.ageing > Seconds{0} && waited.count_seconds() >= policy.ageing.value();
}

double aged_service(const WaitingJob& job, const Policy& policy, const Situation& situation) {
  const ServiceBasis basis = service_basis(*job.request, situation.plans);
  const Duration waited = situation.now - job.submitted - ran_for(basis, job.attained);
  const double service = service_of(basis, job.done, job.attained, policy);
  return aged(service, {waited, basis.whole}, policy);
}

bool by_service(const Policy& policy) {
  return policy.order == QueueOrder::kFair && policy.inside == TenantOrder::kService;
}

bool by_service(const JobRequest& job, const Policy& policy) {
  return by_service(policy) && job.kind != JobKind::kServe;
}

bool may_be_promised(const WaitingJob& job, const Situation& situation) {
  const std::optional<Instant>& deadline = job.request->deadline;
  return deadline && *deadline > situation.now && known_time_left(job, situation.plans);
}

OrderKey key_of(const WaitingJob& job, const Policy& policy, const Situation& situation) {
  return {first_key(job, policy, situation),
          by_service(*job.request, policy) ? aged_service(job, policy, situation) : 0,
          job.submitted, job.id};
}

WaitingJob as_waiting(const RunningJob& job, Instant now) {
  return {job.id, job.request, job.submitted, job.done_at(now), job.attained_at(now), job.data_at};
}

std::vector<std::uint32_t> in_order(const Situation& situation, const Policy& policy) {
  const std::span<const WaitingJob> waiting = situation.waiting;
  struct Entry {
    OrderKey key;
    std::uint32_t at;
  };
  std::vector<Entry> entries;
  entries.reserve(waiting.size());
  for (std::uint32_t i = 0; i < waiting.size(); ++i) {
    entries.push_back({key_of(waiting[i], policy, situation), i});
  }
  const auto before = [](const Entry& a, const Entry& b) { return a.key < b.key; };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
  std::vector<std::uint32_t> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(entry.at);
  if (by_service(policy)) let_pressed_pass(situation, policy, order);
  return order;
}

}  // namespace orrery

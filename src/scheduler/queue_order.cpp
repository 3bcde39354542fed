#include "scheduler/queue_order.hpp"

#include <algorithm>

#include "scheduler/run_time.hpp"

namespace orrery {
namespace {

double attained_queue(double attained, const Policy& policy) {
  const auto& limits = policy.queue_limits;
  return static_cast<double>(std::upper_bound(limits.begin(), limits.end(), attained) -
                             limits.begin());
}

double first_key(const WaitingJob& job, const Policy& policy, const PlanTable* plans) {
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
    case QueueOrder::kFair:
      return -static_cast<double>(rank_of(*job.request));
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

OrderKey key_of(const WaitingJob& job, const Policy& policy, const PlanTable* plans) {
  return {first_key(job, policy, plans), job.submitted, job.id};
}

WaitingJob as_waiting(const RunningJob& job, Instant now) {
  return {job.id, job.request, job.submitted, job.done_at(now), job.attained_at(now)};
}

std::vector<std::uint32_t> in_order(std::span<const WaitingJob> waiting, const Policy& policy,
                                    const PlanTable* plans) {
  struct Entry {
    OrderKey key;
    std::uint32_t at;
  };
  std::vector<Entry> entries;
  entries.reserve(waiting.size());
  for (std::uint32_t i = 0; i < waiting.size(); ++i) {
    entries.push_back({key_of(waiting[i], policy, plans), i});
  }
  const auto before = [](const Entry& a, const Entry& b) { return a.key < b.key; };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
  std::vector<std::uint32_t> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(entry.at);
  return order;
}

}  // namespace orrery

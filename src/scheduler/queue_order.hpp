// scheduler/queue_order.hpp - who of the waiting goes first.
#pragma once

#include <compare>
#include <span>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Ascending: the first goes first. Ties end at the id.
struct OrderKey {
  double first = 0;
  Instant submitted;
  JobId id;

  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

/// Priority as preemption and fair queues see it: a service before everything else, preemptible
/// batch behind it, whatever their priorities.
[[nodiscard]] std::int32_t rank_of(const JobRequest& job);

/// The key of a job under an order; kFair is by rank here, the tenants are walked elsewhere.
[[nodiscard]] OrderKey key_of(const WaitingJob& job, const Policy& policy, const PlanTable* plans);

/// A running job as if it waited from `now` on.
[[nodiscard]] WaitingJob as_waiting(const RunningJob& job, Instant now);

/// Positions in `waiting`, first to go first. O(n log n).
[[nodiscard]] std::vector<std::uint32_t> in_order(std::span<const WaitingJob> waiting,
                                                  const Policy& policy, const PlanTable* plans);

}  // namespace orrery

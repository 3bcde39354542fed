// scheduler/tenants/queue_order.hpp - the order in which waiting jobs are considered.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Ascending: the smallest key goes first. The last field, the id, breaks ties.
struct OrderKey {
  double first = 0;
  double second = 0;
  Instant submitted;
  JobId id;

  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

/// Priority as preemption and fair queues see it: a service before everything else, preemptible
/// batch behind it, whatever their priorities.
[[nodiscard]] std::int32_t rank_of(const JobRequest& job);

/// rank_of() as used between jobs of one tenant: under TenantOrder::kService batch jobs are behind
/// the others by their service alone.
[[nodiscard]] std::int32_t rank_in_tenant(const JobRequest& job, const Policy& policy);

/// The key of a job under an order. For kFair it is by rank and then by Policy::inside; the order
/// of the tenants is determined elsewhere.
[[nodiscard]] OrderKey key_of(const WaitingJob& job, const Policy& policy,
                              const Situation& situation);

/// Whether the deadline of a job is one that kDeadlineShares may promise: it is in the future, and
/// the length of the job is known.
[[nodiscard]] bool may_be_promised(const WaitingJob& job, const Situation& situation);

/// What the service of a job is computed from, apart from its progress.
struct ServiceBasis {
  std::optional<Duration> whole;  ///< none: the length of the job is not known
  std::uint32_t devices = 0;      ///< devices that the job requests
  double weight = 1;              ///< doubled for preemptible batch jobs
};
[[nodiscard]] ServiceBasis service_basis(const JobRequest& job, const PlanTable* plans);

/// Device-seconds by which jobs of one tenant and rank are ordered under TenantOrder::kService:
/// those left if the length of the job is known, else the end of the class of those it has had
/// (Policy::attained_step); times the weight. A job beyond its length has nothing left, but with
/// Policy::max_stretch as much as it ran beyond it.
[[nodiscard]] double service_of(const ServiceBasis& basis, double done, double attained,
                                const Policy& policy);
/// How long the job ran since it was submitted.
[[nodiscard]] Duration ran_for(const ServiceBasis& basis, double attained);
/// The fraction of Policy::max_stretch at which what a job counts for is halved.
inline constexpr double kHalfOfStretch = 0.1;
struct JobAge {
  Duration waited;
  std::optional<Duration> run;  ///< of the whole job; none: its length is not known
};
/// Service over 1 + (the time waited / Policy::ageing)^2. Where the length of the job is known and
/// Policy::max_stretch is set, also over 1 + (the time waited / (run x max_stretch x
/// kHalfOfStretch))^2, and 0 from max_stretch on.
[[nodiscard]] double aged(double service, const JobAge& age, const Policy& policy);
/// The service of a job, aged by the time it has waited.
[[nodiscard]] double aged_service(const WaitingJob& job, const Policy& policy,
                                  const Situation& situation);
/// Whether a job has waited for at least Policy::ageing.
[[nodiscard]] bool is_old(Duration waited, const Policy& policy);
/// The fraction of a job's run for which devices may be kept empty for it when it is next in the
/// order.
inline constexpr double kDrainOfRun = 0.3;
/// Whether jobs of a tenant are ordered by their aged service.
[[nodiscard]] bool by_service(const Policy& policy);
[[nodiscard]] bool by_service(const JobRequest& job, const Policy& policy);

/// A running job as if it had to wait from `now` on.
[[nodiscard]] WaitingJob as_waiting(const RunningJob& job, Instant now);

/// Positions in the situation's waiting jobs, first to go first: by key_of(), except that under
/// TenantOrder::kService jobs whose slack runs out pass others (scheduler/tenants/slack.hpp). O(n
/// log n).
[[nodiscard]] std::vector<std::uint32_t> in_order(const Situation& situation, const Policy& policy);

}  // namespace orrery

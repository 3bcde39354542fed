// scheduler/preempt/overtaking.hpp - overtaking: running jobs stop for a waiting job that has far
// less work left, so that the order inside a tenant also holds among running jobs.
//
// Belongs to one pass. Policy::yield_ratio and Policy::min_run bound what overtaken jobs lose. The
// job with the most service left may be overtaken by most others, and is overtaken first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/preempt/device_taking.hpp"

namespace orrery {

class Overtaking {
 public:
  Overtaking(PassContext& pass, StartSearch& search, LeavingJobs& leaving, DeviceTaking& taking);

  /// Whether the job has room now.
  bool make_room(const QueuedJob& queued, const Refusal& refusal);

  /// Whether a job would miss its deadline if it waited for the longest run that waits in its
  /// tenant.
  [[nodiscard]] bool is_pressed(const WaitingJob& job);
  /// Precondition: the running job is preemptible and writes checkpoints.
  [[nodiscard]] bool may_be_overtaken(const JobRequest& mine, std::uint32_t running) const;

 private:
  enum class Pressed : std::uint8_t { kNo, kYes };
  /// Whether all jobs that may be overtaken are listed, or only the first found.
  enum class Listed : std::uint8_t { kAll, kAny };
  /// What a waiting job asks of running ones.
  struct Ask {
    const WaitingJob& job;
    double least = 0;  ///< service that a running job needs to be overtaken
    Pressed pressed = Pressed::kNo;
    FreedBy freed_by = FreedBy::kOthers;  ///< kOwnTenant: only jobs of its tenant help
  };
  /// Search results for the jobs of a tenant and rank, each valid for one value of
  /// UsageEdits::changes().
  struct Asker {
    LeaverList overtaken;     ///< listed from the second search on, after a vain one
    double most_service = 0;  ///< the most service of a job that they may overtake
    std::uint64_t most_under = UsageEdits::kNever;
  };

  /// Positions among the running, ascending.
  [[nodiscard]] std::vector<std::uint32_t> who_is_overtaken(const Ask& ask, Listed listed);
  [[nodiscard]] bool overtake_some_of(const Ask& ask, std::span<const std::uint32_t> who);
  /// Whether a job has to start now to keep its deadline.
  [[nodiscard]] bool is_overdue(const WaitingJob& job) const;
  /// Whether a running job keeps its deadline now, but not if it waits until another job is done.
  [[nodiscard]] bool would_be_late(const RunningJob& running, const WaitingJob& other) const;
  /// Whether a job holds devices that its tenant borrows, and that tenant has a larger weighted
  /// share than the claimant.
  [[nodiscard]] bool is_lent(const RunningJob& job, TenantId claimant) const;
  /// The most service of the jobs that a job of the same tenant and rank may overtake; 0: there are
  /// none.
  [[nodiscard]] double most_service(const QueuedJob& queued);
  [[nodiscard]] bool is_in_vain(const QueuedJob& queued);
  /// A victim that makes the plan break a limit or a guarantee; none: the plan keeps them.
  [[nodiscard]] std::optional<std::uint32_t> object(const WaitingJob& job,
                                                    const PreemptionPlan& plan) const;

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  LeavingJobs& leaving_;
  DeviceTaking& taking_;
  std::vector<Asker> askers_;  ///< by QueuedJob::asker
  std::uint32_t vain_ = 0;     ///< vain searches for jobs to overtake
  /// Longest expected run of a waiting job; empty: not computed yet.
  std::map<TenantId, Duration> longest_waiting_;
};

}  // namespace orrery

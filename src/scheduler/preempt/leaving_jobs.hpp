// scheduler/preempt/leaving_jobs.hpp - running jobs that may have to leave, and whether a waiting
// job would fit without them.
//
// Belongs to one pass; its index of running jobs and its overlay belong to the scheduler's memory.
// It changes nothing. A search for victims looks at many jobs, so these questions show first that
// it would be in vain. Cost: a count, or an overlay without the jobs, which is built once for each
// list.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/pass/start_search.hpp"
#include "scheduler/power/yielders.hpp"

namespace orrery {

/// Running jobs that may leave for the waiting jobs of a tenant and rank, ascending; valid for one
/// value of UsageEdits::changes().
struct LeaverList {
  std::uint64_t under = UsageEdits::kNever;
  std::vector<std::uint32_t> who;
  bool in_vain = false;                ///< a search among them found no plan
  std::vector<std::uint32_t> devices;  ///< devices of these jobs, by type; empty: not counted yet
};

/// What a scheduler keeps for its passes: an index of the running jobs, and an overlay, which is
/// expensive to allocate.
struct LeavingMemory {
  Yielders yielders;
  std::optional<FleetOverlay> without;  ///< the fleet without some jobs
};

class LeavingJobs {
 public:
  /// `askers`: WaitingQueue::askers().
  LeavingJobs(PassContext& pass, StartSearch& search, LeavingMemory& memory, std::size_t askers);

  /// The number of askers (QueuedJob::asker), for each of which lists are kept.
  [[nodiscard]] std::size_t askers() const { return askers_; }

  /// The running jobs that may have to be preempted, as they are in the situation.
  [[nodiscard]] Yielders& yielders();

  /// Devices of the running jobs `from`, by type.
  [[nodiscard]] std::vector<std::uint32_t> devices_of(std::span<const std::uint32_t> from) const;
  /// Whether a gang may find enough devices when `devices` come free, by number alone.
  [[nodiscard]] bool enough_with(std::span<const std::uint32_t> devices,
                                 const JobRequest& job) const;
  /// Whether a job lacks devices by number even if all jobs with at least `service` left, among
  /// them some that may not be overtaken.
  [[nodiscard]] bool too_few_with(const WaitingJob& job, double service);
  /// Whether a job finds no room even when all of the leavers have left.
  [[nodiscard]] bool no_room_without(LeaverList& leavers, const WaitingJob& job);
  /// Whether a job would find room if all of the leavers had left, whatever the quotas of its
  /// tenant. The fleet without the leavers is kept for the next call. Precondition: a list at this
  /// address names the same jobs in each call with the same LeaverList::under.
  [[nodiscard]] bool fits_without(const LeaverList& leavers, const WaitingJob& job);
  /// Answers the same for a list that is used once; its fleet is not kept.
  [[nodiscard]] bool fits_without(std::span<const std::uint32_t> who, const WaitingJob& job);

 private:
  void build_without(std::span<const std::uint32_t> who);
  [[nodiscard]] bool fits_there(const WaitingJob& job);

  PassContext& pass_;
  const Situation& s_;
  StartSearch& search_;
  LeavingMemory& memory_;
  std::size_t askers_;
  bool looked_ = false;  ///< whether the index is that of the situation
  const LeaverList* built_for_ =
      nullptr;                     ///< the list that the overlay leaves out; nullptr: another
  std::uint64_t built_under_ = 0;  ///< its LeaverList::under
};

}  // namespace orrery

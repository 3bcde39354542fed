// scheduler/preempt/surplus_taking.hpp - elastic jobs give up the devices beyond their smallest
// size when a job of their rank or a higher one waits for them.
//
// Belongs to one pass. Where options are chosen by price, elastic jobs grow into what is free; this
// takes it back. No job stops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/preempt/device_taking.hpp"

namespace orrery {

class SurplusTaking {
 public:
  SurplusTaking(PassContext& pass, LeavingJobs& leaving, DeviceTaking& taking);

  /// Whether the job has room now.
  bool make_room(const QueuedJob& queued, const Refusal& refusal);

 private:
  [[nodiscard]] bool has_surplus_for(const WaitingJob& job, const RunningJob& running);
  /// A victim of the plan that cannot go on with fewer devices, or may not; none: all of them can.
  [[nodiscard]] std::optional<std::uint32_t> object_to_shrinking(const WaitingJob& job,
                                                                 const PreemptionPlan& plan);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  LeavingJobs& leaving_;
  DeviceTaking& taking_;
  /// By asker, UsageEdits::changes() at which no running job had a surplus for it.
  std::vector<std::uint64_t> no_surplus_;
};

}  // namespace orrery

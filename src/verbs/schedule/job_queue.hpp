// verbs/schedule/job_queue.hpp - job specs in their order, as requests that wait for a fleet.
//
// Jobs keep their addresses, because those that wait refer to them. One thread.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "scheduler/plans/class_table.hpp"
#include "scheduler/scheduler.hpp"
#include "verbs/schedule/scheduled_fleet.hpp"

namespace orrery {

/// A job that no part of this fleet can ever run.
struct RefusedJob {
  std::string name;
  std::string why;
};

/// A job that waits for other jobs to end: at the start none has ended.
struct HeldJob {
  std::string name;
  std::vector<std::string> after;  ///< names
};

class JobQueue {
 public:
  /// What jobs are read for: the fleet that they shall run on, and its tenants.
  struct Place {
    ScheduledFleet& fleet;
    const TenantTree& tenants;
    Instant now;
  };
  /// Limits of every job; empty: those of its spec.
  struct Limits {
    std::string by;     ///< deadline
    std::string under;  ///< budget
  };

  JobQueue() = default;
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Reads files as they are, and directories as their files of YAML and JSON by name. Errors:
  /// those of the files, with their line; but a job that the fleet can never run is refused.
  [[nodiscard]] Status load(std::span<const std::string> paths, const Place& place,
                            const Limits& limits);

  [[nodiscard]] const std::deque<JobRequest>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<WaitingJob>& waiting() const { return waiting_; }
  [[nodiscard]] const std::vector<RefusedJob>& refused() const { return refused_; }
  [[nodiscard]] const std::vector<HeldJob>& held() const { return held_; }
  [[nodiscard]] const WorkTable& works() const { return works_; }
  /// The job does not wait any more.
  void take_out(JobId job);

 private:
  [[nodiscard]] Status add(const std::string& file, const Place& place, const Limits& limits);

  std::deque<JobRequest> jobs_;
  std::vector<WaitingJob> waiting_;
  std::vector<RefusedJob> refused_;
  std::vector<HeldJob> held_;
  WorkTable works_;
  ClassTable classes_;
};

}  // namespace orrery

// twin/runs/stored_copies.hpp - the copies of jobs' state that go through shared storage: when the
// next is due, and which is being written.
//
// Owned by JobRuns. The stall of the snapshot is part of a job's rate; the bytes are written while
// the job runs on, and share links and storage with other transfers. A system too slow for the
// checkpoint interval lengthens the interval. One thread. Cost: O(log events) a call and the
// transfer.
// Invariant: a job has at most one copy under way, and at most one valid kCopy event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "twin/runs/run_progress.hpp"
#include "twin/runs/world_traffic.hpp"
#include "twin/world/agenda.hpp"

namespace orrery {

class StoredCopies {
 public:
  /// Both must outlive it.
  StoredCopies(WorldTraffic& traffic, Agenda& agenda) : traffic_(&traffic), agenda_(&agenda) {}

  /// Precondition: ids come in order.
  void add() { copies_.emplace_back(); }
  /// Plans the first copy of an attempt whose ranks have just come up.
  void plan_first(JobId job, std::uint32_t attempt, const CheckpointPace& pace, Instant now);
  /// Plans the copy after the last one.
  void plan_next(JobId job, std::uint32_t attempt, const CheckpointPace& pace, Instant now);
  /// Whether the kCopy event is the valid one of its job.
  [[nodiscard]] bool is_due(const WorldEvent& event) const {
    return event.serial == copies_[event.job.value()].number;
  }

  /// Begins a copy of the job's present state. Precondition: the job contends with others, and its
  /// progress is settled.
  void begin(const RunningJob& placed, RunProgress& progress, const State& state, Instant now);
  /// Begins the last copy before a stop in place of one under way. Returns false if there is
  /// nothing to write or no place for it. Precondition: that of begin().
  [[nodiscard]] bool begin_last(const RunningJob& placed, const RunProgress& progress,
                                const State& state, Instant now);
  /// The bytes of the copy under way are stored.
  void complete(JobId job, RunProgress& progress, Instant now);
  /// Ends the job's copies; its events are void.
  void drop(JobId job);

 private:
  struct Copies {
    std::uint32_t number = 0;      ///< a kCopy event with another number is void
    std::optional<Duration> left;  ///< of the work, in the copy under way
    Instant begun;                 ///< when the last one was begun
  };

  WorldTraffic* traffic_;
  Agenda* agenda_;
  std::vector<Copies> copies_;  ///< by job
};

}  // namespace orrery

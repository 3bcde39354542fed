// twin/runs/job_runs.hpp - the runs of a world's jobs: what starts, advances, slows and ends them.
//
// Owned by the World. A job advances by reference seconds at a rate that follows from its plan,
// devices, clock and links. A run that ends or stops has a new serial number, so that the events
// planned for it are void. One thread. Cost: O(log events) a call, and the cost of contention.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/runs/run_progress.hpp"
#include "twin/runs/start_waits.hpp"
#include "twin/runs/stored_copies.hpp"
#include "twin/runs/world_traffic.hpp"
#include "twin/world/agenda.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

/// What a job does in the world.
struct JobRun {
  RunProgress progress;
  bool fails = false;  ///< its program ends with an error when its work is done
  std::uint32_t serial = 0;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  std::uint32_t devices = 0;  ///< of the epoch
  double slowdown = 1;        ///< by the slowest of its nodes
  /// Progress at a stop, reported when its last ranks are gone.
  std::optional<Progress> reported;
};

/// What the faults of its nodes do to a run that comes up there.
struct FaultyStart {
  double slowdown = 1;
  std::optional<Instant> corrupt;  ///< when the detection of its wrong results is due
};

class JobRuns {
 public:
  /// All of them must outlive it.
  JobRuns(const Topology& topology, const WorldFacts& facts, Agenda& agenda);

  /// Precondition: ids come in order.
  void add(const TrueJob& job);
  /// Takes over a job from the history of a snapshot (World::adopt).
  void adopt(JobId id, Duration left, const State& state, Instant now);
  [[nodiscard]] const JobRun& operator[](JobId id) const { return runs_[id.value()]; }
  /// An event of the job that is void once its run has another serial number.
  [[nodiscard]] WorldEvent event_of(WorldEventKind kind, JobId id) const;

  // --- Actions

  void start(const StartRanks& action, const State& state, Instant now);
  /// A requested stop first saves the work done, if the grace period allows.
  void stop(const StopRanks& action, const State& state, Instant now);
  void change_clock(const ApplyClock& action, const State& state, Instant now);
  /// Skips the work that a job has left; its end is an event that the caller plans.
  void exhaust(JobId id) { runs_[id.value()].progress.exhaust(); }

  // --- Events

  /// The ranks of the job are up. Precondition: the event is not void.
  [[nodiscard]] InputKind come_up(JobId id, const FaultyStart& faults, const State& state,
                                  Instant now);
  /// The work of the job is done. Precondition: the event is not void.
  [[nodiscard]] InputKind end(JobId id, const State& state, Instant now);
  /// Returns the report that all ranks of the attempt are gone. Precondition: the event is not
  /// void.
  [[nodiscard]] RanksGone leave_devices(const WorldEvent& event, const State& state, Instant now);
  /// Begins the copy that is due; no effect if the event is void or the ranks do not compute.
  void begin_copy(const WorldEvent& event, const State& state, Instant now);
  /// Completes the transfers that have arrived; no effect if the event is void.
  void bytes_arrived(const WorldEvent& event, const State& state, Instant now);
  /// Called once all links of the instant have changed: steps of jobs that cross them take longer,
  /// or no longer do.
  void links_changed(std::span<const LinkId> links, const State& state, Instant now);
  /// Updates the rates of jobs that contention slows, and plans when the next bytes arrive. Must
  /// follow a change of which jobs run.
  void share(const State& state, Instant now);

  // --- Faults

  /// The ranks stop, and nothing shows it yet. Precondition: the run computes.
  void halt(JobId id, Instant now);
  /// From now on the job computes wrong results, which is detected at `known`. Precondition: the
  /// run computes.
  void corrupt(JobId id, Instant known, Instant now);
  /// The job's steps take `slowdown` times as long as without faults. Precondition: the run
  /// computes.
  void slow(JobId id, double slowdown, const State& state, Instant now);
  /// Ends the attempt where no node can continue it or report its progress; unsaved work is lost.
  [[nodiscard]] InputKind end_lost(JobId id, Blame blame, Instant now);

  // --- Results

  /// The progress that the job would report if its attempt ended now.
  [[nodiscard]] Progress progress_of(const Job& job, Instant now) const;
  /// Jobs that finished with wrong results that were never detected.
  [[nodiscard]] std::uint64_t corrupt_ends() const { return corrupt_ends_; }
  [[nodiscard]] const Recoveries& recoveries() const { return starts_.recoveries(); }

 private:
  void set_rate(JobRun& run, JobId id, const State& state);
  void plan_end(JobRun& run, JobId id, Instant now);
  /// The job begins to send and to write copies.
  void join(JobRun& run, JobId id, const State& state, Instant now);
  /// Ends the job's traffic and copies, however its ranks ended.
  void leave(JobRun& run, JobId id, Instant now);
  /// Before a new epoch, reports time lost to a halt or to wrong results, in time of the new
  /// devices.
  void report_epoch(JobRun& run, const RunningJob& placed, Instant now);
  /// What a job's checkpoints cost in this world.
  [[nodiscard]] CheckpointPace pace_of(const RunningJob& placed) const;

  const WorldFacts* facts_;
  Agenda* agenda_;
  WorldTraffic traffic_;
  StartWaits starts_;
  StoredCopies copies_;
  std::vector<JobRun> runs_;  ///< by job
  std::uint64_t corrupt_ends_ = 0;
};

}  // namespace orrery

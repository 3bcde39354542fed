// verbs/fork/live_fork.hpp - the present state of a cluster's log, with the facts it rests on,
// to be played on in the twin: as it is, or with changes.
//
// Made by a verb from the store of a controller, which may be running: it is only read. Playing
// leaves the fork unchanged. One thread. Cost: reading the log, then that of the twin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/history.hpp"
#include "twin/simulation.hpp"
#include "verbs/store/store_setup.hpp"

namespace orrery {

/// Changes that an operator might make at the instant of the fork.
struct ForkChange {
  std::vector<SubmitJob> jobs;
  std::vector<InputKind> commands;
};

/// The predicted start and end of a job from the fork on.
struct JobFate {
  JobId job;
  Instant start = Instant::max();  ///< the next start; max: it runs already, or does not start
                                   ///< within the span
  Instant end = Instant::max();    ///< max: not within the span
};

class LiveFork {
 public:
  /// Errors: no store there, damage of the log, texts that this program cannot read.
  [[nodiscard]] static Result<std::unique_ptr<LiveFork>> read(const CommandOptions& options,
                                                              const std::string& store);

  [[nodiscard]] const State& state() const { return history_.core->state(); }
  /// Returns the instant of the fork: not before the newest event.
  [[nodiscard]] Instant now() const { return now_; }
  /// Returns the jobs of a text, as the controller would read them. Errors: those of
  /// JobIntake::read.
  [[nodiscard]] Result<std::vector<SubmitJob>> jobs_of(const JobText& text);

  /// Plays on for `span`. Returns, by id, every job of the fork, then those of the change. A
  /// command that control would refuse changes nothing. Errors: those of the snapshot.
  [[nodiscard]] Result<std::vector<JobFate>> play(const ForkChange& change, Duration span);

 private:
  std::unique_ptr<StoredSetup> setup_;
  RecoveredCore history_;
  std::string snapshot_;
  Instant now_;
};

/// Returns what is known of a job's run time: its steps, where its work is in steps; else its
/// estimate, else its time limit. A job that has run longer than that counts as nine tenths done; a
/// job that has none of these does not end.
[[nodiscard]] Simulation::KnownJob known_of(const State& state, JobId id, Instant now);

}  // namespace orrery

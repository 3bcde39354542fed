// apps/orrery/live_fork.hpp - the state that a cluster's log has now, with the facts it rests on,
// to be played on in the twin: as it is, or with changes.
//
// Made by a verb from the store of a controller, which may be running: it is only read. What is
// played leaves the fork as it was. One thread. Cost: reading the log, then that of the twin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/orrery/store_setup.hpp"
#include "store/history.hpp"
#include "twin/simulation.hpp"

namespace orrery {

/// What an operator might do at the instant of the fork.
struct ForkChange {
  std::vector<SubmitJob> jobs;
  std::vector<InputKind> commands;
};

/// What becomes of a job from the fork on.
struct JobFate {
  JobId job;
  Instant start = Instant::max();  ///< the next time; max: it runs already, or not within the time
  Instant end = Instant::max();    ///< max: not within the time
};

class LiveFork {
 public:
  /// Errors: no store there, damage of the log, texts that this program cannot read.
  [[nodiscard]] static Result<std::unique_ptr<LiveFork>> read(const CommandOptions& options,
                                                              const std::string& store);

  [[nodiscard]] const State& state() const { return history_.core->state(); }
  /// The instant of the fork: not before the newest event.
  [[nodiscard]] Instant now() const { return now_; }
  /// The jobs of a text, as the controller would take them. Errors: as of JobIntake::read.
  [[nodiscard]] Result<std::vector<SubmitJob>> jobs_of(const JobText& text);

  /// Plays on for `span`. By id: every job that the fork has, then those of the change. A
  /// command that control would refuse changes nothing. Errors: those of the snapshot.
  [[nodiscard]] Result<std::vector<JobFate>> play(const ForkChange& change, Duration span);

 private:
  std::unique_ptr<StoredSetup> setup_;
  RecoveredCore history_;
  std::string snapshot_;
  Instant now_;
};

/// What is known of how long a job takes. Of work in steps: the steps; else its estimate, else its
/// time limit. One that has run longer than that is taken to be nine tenths done;
/// one that has none of these, not to end.
[[nodiscard]] Simulation::KnownJob known_of(const State& state, JobId id, Instant now);

}  // namespace orrery

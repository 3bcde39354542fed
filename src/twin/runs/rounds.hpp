// twin/runs/rounds.hpp - the synchronous rounds of a replay by another simulator's rules.
//
// Owned by the World; unused where time does not go in rounds. Each job runs as many whole steps as
// fit into the round, or the steps it has left. The next round begins when the longest of these is
// over; the devices of a job that ended earlier are freed only then. Cost: O(running jobs) a round.
#pragma once

#include <cstdint>
#include <vector>

#include "control/state/state.hpp"
#include "twin/runs/job_runs.hpp"
#include "twin/world/agenda.hpp"

namespace orrery {

class Rounds {
 public:
  /// The agenda and the runs must outlive it.
  Rounds(Agenda& agenda, JobRuns& runs) : agenda_(&agenda), runs_(&runs) {}

  /// Precondition: ids come in order.
  void add(const TrueJob& job) { jobs_.push_back({job.steps, job.steps_per_second}); }
  /// Begins a round of all running jobs if none is under way. `longest`: of a round of one job.
  void begin(Duration longest, const State& state, Instant now);
  void end() { under_way_ = false; }
  [[nodiscard]] bool under_way() const { return under_way_; }

 private:
  struct Steps {
    std::uint64_t left = 0;
    double per_second = 0;  ///< at an option's speed of 1
  };
  /// Takes the steps of a round from the job, and plans its end with the last. Returns their time.
  [[nodiscard]] Duration take_steps(const RunningJob& placed, Duration longest, Instant now);

  Agenda* agenda_;
  JobRuns* runs_;
  std::vector<Steps> jobs_;  ///< by id
  bool under_way_ = false;
};

}  // namespace orrery

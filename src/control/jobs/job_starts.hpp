// control/jobs/job_starts.hpp - begins attempts of jobs, and new epochs of them.
//
// Precondition of both: DecisionCheck found no objection to the decision in the present state, or
// the decision only gives devices back (resize_without).
#pragma once

#include <optional>

#include "control/jobs/last_places.hpp"
#include "control/jobs/plan_searches.hpp"
#include "control/recorder.hpp"

namespace orrery {

class JobStarts {
 public:
  JobStarts(Recorder& recorder, LastPlaces& places, PlanSearches& plans)
      : recorder_(recorder), state_(recorder.state()), places_(places), plans_(plans) {}

  /// Starts a job that waits in the queue; `in_place`: how it restarts where it was.
  void start(const StartJob& start, std::optional<RestartKind> in_place = std::nullopt);
  /// Continues a job on other devices in a new epoch.
  void go_on_as(const ResizeJob& resize);

 private:
  void request_plans(const StartJob& start);

  Recorder& recorder_;
  const State& state_;
  LastPlaces& places_;
  PlanSearches& plans_;
};

}  // namespace orrery

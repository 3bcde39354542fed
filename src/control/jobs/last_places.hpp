// control/jobs/last_places.hpp - where jobs ran before an infrastructure fault.
//
// A job that stops, or waits, after such a fault restarts at its last place if it can. The state
// does not hold the places: a core that resumes recalls them from the records of the jobs.
// Invariant: a job that was started again, or has ended, has no last place.
#pragma once

#include <map>
#include <vector>

#include "control/state/state.hpp"

namespace orrery {

class LastPlaces {
 public:
  using Places = std::map<JobId, std::vector<PlacedGang>>;

  void remember(JobId id, std::vector<PlacedGang> gangs) { places_[id] = std::move(gangs); }
  void forget(JobId id) { places_.erase(id); }
  /// Forgets all places and takes those that the records of the state's jobs tell. O(jobs).
  void recall_all(const State& state);
  /// Takes the place that the record of a job tells, if it tells one.
  void recall(const Job& job, const Topology& topology);

  /// By job, ascending.
  [[nodiscard]] const Places& all() const { return places_; }

 private:
  Places places_;
};

}  // namespace orrery

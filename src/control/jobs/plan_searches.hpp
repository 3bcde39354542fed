// control/jobs/plan_searches.hpp - the plans that were requested and have not been found yet.
//
// Invariant: a plan is searched for once at a time. The state does not hold the requests: a core
// that resumes requests a plan again when it misses it again. Cost: O(log searches).
#pragma once

#include <set>

#include "control/recorder.hpp"

namespace orrery {

class PlanSearches {
 public:
  explicit PlanSearches(Recorder& recorder) : recorder_(recorder) {}

  /// Requests a plan, unless it is searched for already.
  void request(const PlanKey& key) {
    if (open_.insert(key).second) recorder_.act(SearchPlan{key});
  }
  void on(const PlanReady& ready) {
    open_.erase(ready.key);
    if (recorder_.state().plans().find(ready.key) != nullptr) return;
    recorder_.emit(PlanFound{ready.key, ready.entry});
  }
  /// Forgets all requests: the options of another fleet have other plans.
  void forget() { open_.clear(); }

 private:
  Recorder& recorder_;
  std::set<PlanKey> open_;
};

}  // namespace orrery

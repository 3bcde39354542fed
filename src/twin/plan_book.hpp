// twin/plan_book.hpp - the plan that a gang runs by, whether the policy asked for it or not.
//
// One per world. A policy that prices placements has chosen the plan before it starts a gang; for
// any other the job's launcher takes the best one that fits the devices it was given. Cost: O(log
// plans), a search the first time.
#pragma once

#include <map>
#include <memory>

#include "control/setup.hpp"
#include "control/state/state.hpp"

namespace orrery {

struct PlannedRun {
  const PlannedWork* plan = nullptr;  ///< none: the job has none; valid as long as the book
  double ratio = 1;                   ///< time of a step on its devices over that of the plan

  /// The training plan; none: no plan, or a service.
  [[nodiscard]] const PlannedTraining* training() const {
    return plan != nullptr ? plan->training() : nullptr;
  }
};

class PlanBook {
 public:
  explicit PlanBook(PlanSource source) : source_(std::move(source)) {}

  /// Must be called when the state of links has changed: the step times of gangs are computed anew.
  void links_changed() { links_changed_ = true; }

  /// The plan of a gang of a job that holds devices.
  [[nodiscard]] PlannedRun of(const RunningJob& job, std::size_t gang, const State& state);

 private:
  PlanSource source_;
  bool links_changed_ = false;
  std::map<PlanKey, std::shared_ptr<const PlanEntry>> found_;
};

}  // namespace orrery

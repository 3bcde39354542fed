// twin/plan_book.hpp - the plan a gang really runs by, whether the policy asked for it or not.
//
// One per world. A policy that prices placements has chosen the plan before it starts a gang; for
// any other the job's launcher takes the best one that fits the devices it was given. Cost: O(log
// plans), a search the first time.
#pragma once

#include <map>
#include <memory>

#include "control/setup.hpp"
#include "control/state.hpp"

namespace orrery {

struct PlannedRun {
  const PlannedWork* plan = nullptr;  ///< none: the job has none; valid as long as the book
  double ratio = 1;                   ///< of a step on its devices to the plan's canonical one

  /// The training it is; none: no plan, or a service.
  [[nodiscard]] const PlannedTraining* training() const {
    return plan != nullptr ? plan->training() : nullptr;
  }
};

class PlanBook {
 public:
  explicit PlanBook(PlanSource source) : source_(std::move(source)) {}

  /// The links have another state than when gangs started: what their steps take is asked anew.
  void links_changed() { links_changed_ = true; }

  /// Of a gang of a job that holds devices.
  [[nodiscard]] PlannedRun of(const RunningJob& job, std::size_t gang, const State& state);

 private:
  PlanSource source_;
  bool links_changed_ = false;
  std::map<PlanKey, std::shared_ptr<const PlanEntry>> found_;
};

}  // namespace orrery

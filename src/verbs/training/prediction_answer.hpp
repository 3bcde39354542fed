// verbs/training/prediction_answer.hpp - the answer of `orrery predict`: the step time of every
// layout that a training may have on this machine.
#pragma once

#include <vector>

#include "verbs/local/local_plan.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct PredictCall {
  LocalPlanFiles files;
  std::size_t top = 10;  ///< rows of the text; the JSON has every layout
  RankRange ranks;
};

/// Shows the steps, fastest first as they come.
[[nodiscard]] VerbAnswer prediction_answer(const LocalPlan& plan,
                                           const std::vector<PlannedStep>& steps, std::size_t top);

/// A doubt about the calibration goes to options.message. Errors: those of read_local_plan() and
/// plan_local_steps().
[[nodiscard]] Result<VerbAnswer> report_prediction(const CommandOptions& options,
                                                   const PredictCall& call);

}  // namespace orrery

// verbs/plan/plan_json.hpp - plans for programs.
#pragma once

#include "base/format/field_writer.hpp"
#include "planner/sensitivity.hpp"
#include "verbs/plan/plan_request.hpp"

namespace orrery {

/// Seconds by term; the terms sum to the step.
[[nodiscard]] Json breakdown_json(const Breakdown& terms);

/// Returns one plan with its figures; dollars, joules and figures derived from them are null where
/// not published.
[[nodiscard]] Json offer_json(const PlanOffer& offer, const MachineChoice& machine,
                              const RunLength& run);

/// Returns {plans, pareto, assumptions, counters, refused}.
[[nodiscard]] Json answer_json(const PlanAnswer& answer, const PlanRequest& request);

/// Returns an array of {figure, plus_1_percent, minus_1_percent}.
[[nodiscard]] Json sensitivity_json(const std::vector<Sensitivity>& sensitivities);

}  // namespace orrery

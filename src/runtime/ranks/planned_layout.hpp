// runtime/ranks/planned_layout.hpp - the planned division of a model among a training's ranks:
// read from Orrery's environment, and checked against the training's spec.
//
// Values and pure functions, used at the start of every rank. Invariant: a spec that follows a plan
// has the plan's values wherever the spec leaves a choice; a contradiction is an error.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/training/training_spec.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// Returns the plan of a gang in the launch contract's ORRERY_PLAN (executor/jobs/plan_text.hpp);
/// nothing: the text is empty, or the gang has no plan. Errors: the text is invalid.
[[nodiscard]] Result<std::optional<ParallelPlan>> plan_of_gang(std::string_view text,
                                                               std::uint32_t gang);

/// Sets what `spec` leaves open from the plan. Errors: the trainer cannot do what is planned, or
/// the spec states another value.
[[nodiscard]] Status follow(const ParallelPlan& plan, TrainingSpec& spec);

}  // namespace orrery

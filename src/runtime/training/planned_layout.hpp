// runtime/training/planned_layout.hpp - how somebody has planned that a training's ranks share its
// model: read from what Orrery tells them, and held against what its spec states.
//
// Values and pure functions, used at the start of every rank. Invariant: a spec that follows a plan
// is the plan's wherever the spec leaves a choice, and says what it would not follow.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/training/training_spec.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// What the launch contract's ORRERY_PLAN (executor/plan_text.hpp) says of a gang; nothing: the
/// text is empty, or the gang has no plan. Errors: it is no such text.
[[nodiscard]] Result<std::optional<ParallelPlan>> plan_of_gang(std::string_view text,
                                                               std::uint32_t gang);

/// Sets what `spec` leaves open as the plan has it. Errors: something the trainer cannot do, or
/// that the spec states otherwise.
[[nodiscard]] Status follow(const ParallelPlan& plan, TrainingSpec& spec);

}  // namespace orrery

// executor/jobs/plan_text.hpp - ORRERY_PLAN: the layout of a job's gangs, and how they continue
// after losses, as JSON for its ranks.
//
// A pure function of control's state. With it survivors need no controller for their next step.
#pragma once

#include <string>

#include "control/state/state.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// {"gangs": [{"gang": 0, "role": "train", "accelerator": "h100", "accelerators": 16,
///             "plan": {"tp": 2, ..., "step_s": 0.41},
///             "fallback": [{"lost": 1, "accelerators": 8, "wait_s": 0, "plan": {...}},
///                          {"lost": 5, "restart": true}]}]}
///
/// `plan` is present if Orrery planned the work (`step_s`: predicted seconds of a step), or if the
/// spec states a layout. `lost` counts data-parallel replicas, in an unplanned gang accelerators;
/// an entry applies until the next. `wait_s`: how long to wait for a spare before continuing.
/// Precondition: the job holds devices. Cost: O(options of its roles, squared).
[[nodiscard]] std::string plan_text(const State& state, const JobSpec& spec, JobId id);

}  // namespace orrery

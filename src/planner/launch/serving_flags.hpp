// planner/launch/serving_flags.hpp - a planned service as the command of an inference engine.
//
// Options are those of workload/engine_flags.hpp, which replicas are started with, too. Pure.
#pragma once

#include <string>

#include "base/error.hpp"
#include "planner/serving/serving_plan.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

struct ServingLaunch {
  const ServingQuestion& question;
  const ServingOffer& offer;
};

/// A planned service whose prompts are read apart.
struct ApartLaunch {
  const ServingQuestion& question;
  const ApartOffer& offer;
};

/// The planner's name of an engine; "": it has no constants of it.
[[nodiscard]] std::string_view planned_engine(EngineName engine);

/// A shell script that starts one instance; where the model lies is a variable that the shell
/// requires. Errors (infeasible): a layout that the engine has no option for. Precondition: the
/// engine is not Orrery's own.
[[nodiscard]] Result<std::string> serving_launch_text(const ServingLaunch& launch,
                                                      EngineName engine);

/// A shell script that starts one instance of the kind that a variable names.
[[nodiscard]] Result<std::string> apart_launch_text(const ApartLaunch& launch, EngineName engine);

}  // namespace orrery

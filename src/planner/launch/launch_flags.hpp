// planner/launch/launch_flags.hpp - a plan as the flags or the configuration file of a training
// program.
#pragma once

#include <array>
#include <string>

#include "base/error.hpp"
#include "perf/training/training_job.hpp"
#include "planner/plan_space.hpp"

namespace orrery {

enum class Launcher {
  kMegatron,   ///< arguments of Megatron-LM's pretrain_gpt.py
  kDeepspeed,  ///< a DeepSpeed configuration, JSON
  kFsdp,       ///< an Accelerate configuration for PyTorch FSDP, YAML
};

inline std::array<EnumWord<Launcher>, 3> enum_words(Launcher) {
  return {{{"megatron", Launcher::kMegatron},
           {"deepspeed", Launcher::kDeepspeed},
           {"fsdp", Launcher::kFsdp}}};
}

/// What a launcher needs in addition to the plan.
struct Launch {
  const TrainingJob& job;
  const ParallelPlan& plan;
  const Machine& machine;
  double steps = 1;  ///< optimizer steps of the whole run
};

/// The abilities that the program has options for: the plans that launch_text accepts.
[[nodiscard]] RuntimeAbilities abilities_of(Launcher launcher);

/// Errors (infeasible): a dimension of the plan, or a model, that the program has no option for.
[[nodiscard]] Result<std::string> launch_text(const Launch& launch, Launcher launcher);

}  // namespace orrery

// apps/orrery/local_plan.hpp - a training spec and a machine's calibration, read together, and what
// they say of a step.
//
// Made by `orrery predict` and `orrery report` for one call; immutable then.
#pragma once

#include <string>
#include <vector>

#include "apps/orrery/context.hpp"
#include "perf/local_training.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct LocalPlanFiles {
  std::string training;     ///< kind: Training
  std::string calibration;  ///< kind: NodeCalibration
};

struct LocalPlan {
  TrainingSpec spec;
  CalibratedMachine machine;
  LocalStepModel model;
  std::string doubt;  ///< why it may not hold here; "": nothing
};

/// Errors: files that cannot be read, a calibration in another precision than the training's.
[[nodiscard]] Result<LocalPlan> read_local_plan(const CommandOptions& options,
                                                const LocalPlanFiles& files,
                                                LocalExchange exchange);

/// The step of so many ranks, `micro` sequences at a time. Errors: more ranks than shards, or than
/// were measured.
[[nodiscard]] Result<LocalStep> predict_step(const LocalPlan& plan, std::uint32_t ranks,
                                             std::uint32_t micro);

/// Every number of ranks that shards and calibration allow with every micro-batch that divides a
/// shard, fastest first.
[[nodiscard]] Result<std::vector<LocalStep>> rank_local_steps(const LocalPlan& plan);

}  // namespace orrery

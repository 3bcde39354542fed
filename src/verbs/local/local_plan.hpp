// verbs/local/local_plan.hpp - a training spec and a machine's calibration, read together, and the
// steps that they predict.
//
// Made by `orrery predict`, `submit` and `report` for one call; immutable afterwards.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "perf/training/local_training.hpp"
#include "runtime/ranks/rank_memory.hpp"
#include "runtime/training/training_spec.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

struct LocalPlanFiles {
  std::string training;     ///< kind: Training
  std::string calibration;  ///< kind: NodeCalibration
  LocalExchange exchange = LocalExchange::kSharedMemory;
};

struct LocalPlan {
  TrainingSpec spec;
  CalibratedMachine machine;
  LocalStepModel model;
  std::string doubt;  ///< why the prediction may not hold here; "": no doubt
};

/// Reads the spec, adapted to a plan where one is given. Errors: files that cannot be read, a
/// calibration in another precision than the training's.
[[nodiscard]] Result<LocalPlan> read_local_plan(
    const CommandOptions& options, const LocalPlanFiles& files,
    const std::optional<ParallelPlan>& followed = std::nullopt);

/// Predicts the step of `ranks` ranks, with the spec's layout. Errors: ranks that are not whole
/// replicas, more replicas than shards, or more ranks than were measured.
[[nodiscard]] Result<LocalStep> predict_step(const LocalPlan& plan, std::uint32_t ranks);

/// A layout for a number of ranks, and what the rank that needs the most memory needs.
struct PlannedStep {
  LocalStep step;
  RankMemory memory;
};

/// The number of ranks that take part.
struct RankRange {
  std::uint32_t least = 1;
  std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
};

/// Returns every layout that the trainer can run within the spec, on a number of ranks in the range
/// that shards and calibration allow and whose ranks together fit the memory of this machine:
/// fastest first, then the one with fewer ranks, then the one that cuts less. Errors: there is
/// none.
[[nodiscard]] Result<std::vector<PlannedStep>> plan_local_steps(const LocalPlan& plan,
                                                                const RankRange& ranks);

/// Returns the preferred step: among those no slower than the fastest by more than the model's
/// error (15 %), one whose ranks have all of the state, so that the others go on at once when one
/// is lost; then the one with most replicas; then the fastest. Precondition: as of
/// plan_local_steps().
[[nodiscard]] const PlannedStep& best_of(const std::vector<PlannedStep>& steps);

/// Returns a planned step's layout as the plan of a job.
[[nodiscard]] ParallelPlan parallel_plan(const LocalLayout& layout);
/// Returns a table, one line per step.
[[nodiscard]] std::string local_plan_text(const LocalPlan& plan,
                                          const std::vector<PlannedStep>& steps);

}  // namespace orrery

// perf/training/training_estimate.hpp - a published training run as a job, a machine and a plan
// with blanks.
//
// What a row does not say stays open here; the planner fills it (planner/run_estimate.hpp).
#pragma once

#include "base/error.hpp"
#include "perf/machine/machine.hpp"
#include "perf/runs/run_file.hpp"
#include "perf/training/training_job.hpp"
#include "perf/training/training_step.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct RunQuestion {
  TrainingJob job;  ///< points to the run's model
  Machine machine;
  ParallelPlan plan;
  bool layout_open = false;     ///< tp, pp, dp or the micro-batch are the planner's to choose
  bool recompute_open = false;  ///< so is what is recomputed
  bool batch_known = true;
};

/// What is recomputed where the row does not say: the least that fits: none, attention's scores, as
/// few layers of a rank as it takes, all of them; on TPUs then what rests in host memory.
void close_recompute(RunQuestion& question, const TrainingModel& model);

/// Memory of the question's plan; where what is recomputed is open and the plan does not fit, of
/// the one that recomputes as few layers as it takes (single operators, which recipes drop first,
/// are not told apart).
[[nodiscard]] TrainingMemory memory_of(const RunQuestion& question, const TrainingModel& model);

/// The kind of question, as Calibration::residual_of knows it: the stack, and whether the model has
/// experts ("training.megatron.experts").
[[nodiscard]] std::string kind_of_question(const RunQuestion& question);

/// Fully sharded plans of TPUs, which compile one program for a mesh, are complete without a
/// micro-batch: there is no accumulation of gradients.
/// Errors: those of machine_of; a batch that is unknown and cannot be guessed.
[[nodiscard]] Result<RunQuestion> question_of(const TrainingRun& run, const Catalog& catalog);

}  // namespace orrery

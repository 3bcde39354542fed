// perf/training/training_step.hpp - seconds of one optimizer step of a training job under a
// parallel plan.
//
// A TrainingModel is resolved once for a job on a machine; evaluating a plan is then pure
// arithmetic. Searches share the costs of one layer (BlockCosts) between all plans that differ only
// in pipeline and data-parallel sizes. Immutable; may be shared between threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "perf/breakdown.hpp"
#include "perf/calibration.hpp"
#include "perf/machine/machine.hpp"
#include "perf/machine/placement.hpp"
#include "perf/training/layer_cost.hpp"
#include "perf/training/training_memory.hpp"

namespace orrery {

/// What a micro-batch costs in an average layer and at the ends, under one (tp, cp, ep,
/// micro-batch, recompute, sequence parallel) choice.
struct BlockCosts {
  LayerCost layer;  ///< mean over the layers of the model
  EndsCost ends;
  double kept_bytes = 0;  ///< activations a layer keeps of a micro-batch
};

struct StepCost {
  Breakdown terms;
  TrainingMemory memory;
  double seconds = 0;  ///< sum of the terms
};

/// What a step meets beside its own work.
struct StepSurroundings {
  double host_bandwidth = 0;  ///< bytes/s between a rank and its host, one direction
  double last_rank = 0;       ///< deviations by which the last of all ranks is later than the mean
};

class TrainingModel {
 public:
  /// The job's model, the machine and the calibration are read now and not kept.
  /// Errors: a model without layers.
  [[nodiscard]] static Result<TrainingModel> make(const TrainingJob& job, const Machine& machine,
                                                  const Calibration& calibration);

  /// Whether the plan can run at all: divisibility of heads, layers, batch; product of the degrees.
  /// Errors: ErrorKind::kInput, naming the field and the rule.
  [[nodiscard]] Status check(const ParallelPlan& plan) const;

  [[nodiscard]] BlockCosts block_costs(const ParallelPlan& plan) const;

  /// Precondition: check(plan). `blocks` as block_costs(plan) gives. Cost: under a microsecond.
  [[nodiscard]] Breakdown step_terms(const ParallelPlan& plan, const BlockCosts& blocks) const;
  [[nodiscard]] TrainingMemory memory(const ParallelPlan& plan) const;

  /// All of the above. Precondition: check(plan).
  [[nodiscard]] StepCost evaluate(const ParallelPlan& plan) const;

  /// Seconds by term on real devices instead of the canonical machine. Precondition: check(plan).
  /// No allocation; about a microsecond a layer kind.
  [[nodiscard]] Breakdown reprice(const ParallelPlan& plan, const Placement& placement) const;

  [[nodiscard]] const TrainingJob& job() const { return job_; }
  [[nodiscard]] const ModelWork& work() const { return work_; }
  [[nodiscard]] std::uint64_t ranks() const { return ranks_; }
  [[nodiscard]] double memory_limit() const { return memory_limit_; }
  /// What a plan needs of the memory of a rank and of its part of the host's, the scarcer one, over
  /// what there is: above 1 it does not fit. What a host has beside it (the program, its data, the
  /// system) is not counted.
  [[nodiscard]] double fullness(const TrainingMemory& memory) const;
  [[nodiscard]] bool fits(const TrainingMemory& memory) const { return fullness(memory) <= 1; }
  /// Operations of the model in one step, without recomputation, masked scores not counted.
  [[nodiscard]] double model_flops() const { return model_flops_; }
  /// model_flops over what all ranks could do in 16 bits in `seconds`.
  [[nodiscard]] double utilisation(double seconds) const {
    return model_flops_ / (seconds * peak_);
  }
  /// model_flops over what all ranks could do in the job's own format in `seconds`; a format that
  /// the accelerator lacks runs in 16 bits.
  [[nodiscard]] double format_utilisation(double seconds) const {
    return model_flops_ / (seconds * format_peak_);
  }

 private:
  TrainingModel() = default;
  [[nodiscard]] JobWork job_work() const { return {&work_, &job_, attention_flops_}; }
  [[nodiscard]] BlockCosts block_costs_with(const ParallelPlan& plan,
                                            const TrainingConstants& constants) const;
  /// Constants of the stack that runs the plan.
  [[nodiscard]] const TrainingConstants& constants(const ParallelPlan& plan) const;

  TrainingJob job_;
  ModelWork work_;
  std::vector<double> attention_flops_;
  TrainingConstants stacked_;  ///< of plans that are not fully sharded
  TrainingConstants sharded_;
  MemoryConstants memory_constants_;
  double memory_limit_ = 0;
  std::optional<double> host_limit_;  ///< none: not known, not limited
  StepSurroundings surroundings_;
  double model_flops_ = 0;
  double peak_ = 0;         ///< 16-bit operations/s of all ranks
  double format_peak_ = 0;  ///< the same in the job's format
  std::uint64_t ranks_ = 1;
};

}  // namespace orrery

// perf/training/training_memory.hpp - bytes a training plan needs on the fullest rank, formula 9,
// and what a rank offloads to its host.
//
// Activations follow Korthikanti et al. 2022 (34 s b h a layer for a dense GPT with unfused
// drop-outs), generalised to grouped queries, gated and expert feed-forward parts and flash
// attention; states follow Rajbhandari et al. 2020 and Megatron's distributed optimizer.
#pragma once

#include "perf/calibration.hpp"
#include "perf/machine/machine.hpp"
#include "perf/training/layer_cost.hpp"
#include "perf/training/pipeline.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct TrainingMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double transient = 0;  ///< logits and gradients in use, beside all kept activations
  double gathered = 0;   ///< parameters of layers in use, fully sharded plans
  double runtime = 0;    ///< context, communication buffers, fragmentation
  double host = 0;       ///< offloaded to the memory of the host, of the rank that offloads most

  /// What the allocator hands out.
  [[nodiscard]] double allocated() const {
    return weights + gradients + optimizer + activations + transient + gathered;
  }
  [[nodiscard]] double total() const { return allocated() + runtime; }
};

/// Bytes one layer of `kind` keeps of one micro-batch until its backward pass.
[[nodiscard]] double kept_activations(const JobWork& work, std::size_t kind,
                                      const ParallelPlan& plan, Recompute recompute);

struct MemoryConstants {
  double runtime = 2e9;         ///< bytes of driver context and communication buffers
  double fragmentation = 0.05;  ///< of what the allocator hands out
  double logit_bytes = 4;       ///< of a logit and its gradient
  double gathered_layers = 3;   ///< whole layers' parameters and gradients in use, fully sharded
};
/// Returns the constants of the accelerator's software: XLA plans memory ahead and fuses the loss.
[[nodiscard]] MemoryConstants memory_constants(const Machine& machine,
                                               const Calibration& calibration);

/// Returns the memory of the fullest of the first and last stage (the others hold less).
[[nodiscard]] TrainingMemory training_memory(const JobWork& work, const ParallelPlan& plan,
                                             const MemoryConstants& constants);

}  // namespace orrery

// perf/training/training_constants.hpp - the calibration resolved for one machine, precision and
// stack: every constant a training step needs, as plain numbers.
//
// Resolved once a job; the cost of a step then looks nothing up.
#pragma once

#include "perf/calibration.hpp"
#include "perf/machine/collective.hpp"
#include "perf/machine/machine.hpp"
#include "perf/training/training_job.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct TrainingConstants {
  // Operations a second and the shape of the curve, formula 2.
  double wide_rate = 0;    ///< operations/s of large 16-bit products
  double narrow_rate = 0;  ///< of large products in the job's format
  double expert_rate_factor = 1;
  double depth_half = 0;   ///< inner length at which a product reaches half its rate
  double wave_weight = 0;  ///< how much of a partly filled last wave is lost, 0 to 1
  double compute_units = 0;
  double memory_rate = 0;  ///< bytes/s of element-wise passes
  // Attention, formula 3.
  double flash_rate = 0;
  double flash_backward = 1;  ///< rate of the backward kernel over the forward one's
  double sinks = 1;           ///< time with learned sinks over that without
  double flash_half = 0;      ///< sequence at which the kernel reaches half its rate
  double unfused_passes = 0;  ///< over the scores
  double misaligned = 1;      ///< time of unfused attention over that with aligned rows
  double head_misfit = 0;     ///< exponent of the filled part of a head's 64-wide tiles, unfused
  double flash_misfit = 0;    ///< of its 128-wide tiles, flash
  // Passes over activations and fixed times.
  double scan_passes = 1;          ///< element-wise traffic of linear mixers, the same
  double passes = 1;               ///< element-wise traffic over what formula 3 counts
  double loss_bytes = 0;           ///< read and written for each logit
  double cast_passes = 0;          ///< over operands, to make them narrow
  double layer_launch = 0;         ///< seconds the host needs to start a layer's forward pass
  double local_expert_launch = 0;  ///< more of it for the rank's experts to the power 3/4
  double send_launch = 0;          ///< seconds to hand a micro-batch to the next stage
  double permute_passes = 0;
  double biased_passes = 0;  ///< over the inner width of experts with biases
  double imbalance = 1;
  double dispatch_merging = 1;  ///< part of the copies of a token to one node that are sent once
  double step_fixed = 0;
  // Parts of communication that run beside computation.
  double tensor_overlap = 0;
  double shard_overlap = 0;
  double data_overlap = 0;
  double expert_overlap = 0;
  double pipeline_overlap = 0;
  double gradient_bytes = 4;
  double optimizer_passes = 1;
  double accumulated_bytes = 0;  ///< moved for each parameter to add up gradients of micro-batches
  double lora_backward = 1;
  double jitter = 0;  ///< relative spread of a rank's step
  double scale = 1;   ///< all computation; the release of the stack
  Network network;
};

/// The usual stack of an accelerator and a plan: PyTorch FSDP for fully sharded plans without
/// tensor or pipeline parallelism on GPUs, Megatron otherwise (its generation by the attention
/// kernel); the vendor's elsewhere.
[[nodiscard]] TrainingStack stack_of(const Machine& machine, const TrainingJob& job,
                                     const ParallelPlan& plan);

[[nodiscard]] TrainingConstants training_constants(const Machine& machine, const TrainingJob& job,
                                                   TrainingStack stack,
                                                   const Calibration& calibration);

}  // namespace orrery

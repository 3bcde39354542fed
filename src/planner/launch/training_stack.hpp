// planner/launch/training_stack.hpp - whether any software trains on an accelerator, and which
// requirements of a training job its generation does not meet.
//
// Based on the catalog's rows of frameworks that train (PyTorch, JAX, TensorFlow); software built
// on them, such as Megatron-LM, runs where they do. Pure. Cost: the stack rows.
#pragma once

#include <string>
#include <vector>

#include "hardware/catalog.hpp"
#include "perf/training/training_job.hpp"

namespace orrery {

/// Errors: kInfeasible where no framework trains on it, with what the catalog states of each and
/// the nearest accelerator (by 16-bit peak) on which one does. An accelerator without a row of
/// software, such as an invented chip, is assumed to have some.
[[nodiscard]] Status check_training_stack(const Catalog& catalog, const Accelerator& accelerator);

/// Whether frameworks run on it, but for inference alone.
[[nodiscard]] bool only_infers(const Catalog& catalog, const Accelerator& accelerator);

/// Requirements of the job that the accelerator does not meet: its number format, kernels of fused
/// attention. The plan assumes the nearest that it has.
[[nodiscard]] std::vector<std::string> training_lacks(const Accelerator& accelerator,
                                                      const TrainingJob& job);

}  // namespace orrery

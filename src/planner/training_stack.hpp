// planner/training_stack.hpp - whether any software trains on an accelerator, and what a training
// job asks for that its generation lacks.
//
// By the catalog's rows of frameworks that train (PyTorch, JAX, TensorFlow); what stands on them,
// such as Megatron-LM, runs where they do. Pure. Cost: the stack rows.
#pragma once

#include <string>
#include <vector>

#include "hardware/catalog.hpp"
#include "perf/training_job.hpp"

namespace orrery {

/// Errors: kInfeasible where no framework trains on it, with what the catalog states of each and
/// the nearest accelerator (by 16-bit peak) on which one does. An accelerator without a row of
/// software, such as an invented chip, is assumed to have some.
[[nodiscard]] Status check_training_stack(const Catalog& catalog, const Accelerator& accelerator);

/// Whether frameworks run on it, but for inference alone.
[[nodiscard]] bool only_infers(const Catalog& catalog, const Accelerator& accelerator);

/// What the job asks of the accelerator that it has not: its format of numbers, kernels of fused
/// attention. The plan counts with the nearest it has.
[[nodiscard]] std::vector<std::string> training_lacks(const Accelerator& accelerator,
                                                      const TrainingJob& job);

}  // namespace orrery

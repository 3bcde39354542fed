// workload/slurm/sbatch_size.hpp - how large a job of sbatch is: from tasks, nodes and GPUs, of
// which a script names any, to the ranks of a gang.
//
// Pure. Slurm counts tasks and processors and gives GPUs on top; here a gang is made of
// accelerators and each brings its part of the node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "workload/job_spec.hpp"
#include "workload/slurm/sbatch_values.hpp"

namespace orrery {

/// Sizes as requested.
struct SbatchWishes {
  std::optional<SbatchNodes> nodes;
  std::optional<std::uint32_t> tasks;
  std::optional<std::uint32_t> node_tasks;
  std::optional<std::uint32_t> task_cpus;
  std::optional<std::uint32_t> gpu_cpus;
  std::optional<std::uint32_t> gpus;
  std::optional<std::uint32_t> node_gpus;
  std::optional<std::uint32_t> task_gpus;
  std::optional<std::uint32_t> gpu_tasks;
  std::string gpu_type;
  std::optional<Bytes> node_memory;
  std::optional<Bytes> cpu_memory;
  std::optional<Bytes> gpu_memory;
};

struct SbatchSize {
  std::optional<std::uint32_t> nodes;  ///< none: as many as the GPUs need
  std::uint32_t tasks = 1;
  RoleSpec role;
  std::vector<std::string> notes;
};

/// Nodes: those named, else enough for the tasks, or their GPUs, at so many a node, else one where
/// something is counted by node or nothing counts GPUs as a whole. Tasks: those named, else so many
/// a node or GPU, else one a node. Accelerators: the GPUs; where none are asked for one a node,
/// which carries the cores and memory of its tasks. Errors (without position): GPUs that do not
/// divide among nodes or tasks, or contradict each other; more than 1,048,576 of anything.
/// Precondition: what is asked for is at least 1.
[[nodiscard]] Result<SbatchSize> sbatch_size(const SbatchWishes& wishes);

}  // namespace orrery

// node/steps/step_layout.hpp - which tasks of a step run on which nodes of the gang.
//
// Pure functions of srun's options and the gang. Tasks fill node after node ("block").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/steps/srun_options.hpp"
#include "node/steps/step_gang.hpp"

namespace orrery {

/// Tasks of one node, from `first` on.
struct StepPart {
  std::uint32_t node = 0;  ///< of the gang
  std::uint32_t first = 0;
  std::uint32_t tasks = 0;
};

struct StepLayout {
  std::vector<StepPart> parts;  ///< each has a task
  std::uint32_t tasks = 0;
};

/// Nodes: those listed, else the requested number from the first (or --relative) one on, else as
/// many as there are tasks for. Tasks: as many as asked for, else one or --ntasks-per-node on each.
/// Errors: more nodes than the job has, or a node that is not of the job. O(nodes).
[[nodiscard]] Result<StepLayout> step_layout(const SrunOptions& options, const StepGang& gang);

/// Returns the variables that all tasks of step `id` have beside those of srun. O(nodes).
[[nodiscard]] Variables step_variables(const StepLayout& layout, const StepGang& gang,
                                       const std::string& id);

}  // namespace orrery

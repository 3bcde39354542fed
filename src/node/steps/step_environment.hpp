// node/steps/step_environment.hpp - the environment of a script and of the tasks of its steps.
//
// Pure functions; srun(1) of Slurm 22.05 defines the variables. The node sets what it alone knows
// (its devices, its paths), all else comes from srun.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "node/launch/launch_environment.hpp"
#include "node/steps/step_wire.hpp"

namespace orrery {

/// Returns how many tasks each of `nodes` has: at most `most` each where that is not 0, else spread
/// evenly, the first ones more. O(nodes). Precondition: nodes > 0.
[[nodiscard]] std::vector<std::uint32_t> spread_tasks(std::uint32_t tasks, std::uint32_t nodes,
                                                      std::uint32_t most);

/// Returns the script's environment: that of its node, with `tools` first in PATH.
[[nodiscard]] Variables script_environment(const Variables& own, std::size_t nodes,
                                           const std::string& tools);

/// A task of a step on this node.
struct TaskSeat {
  std::uint32_t local = 0;                ///< among the tasks of the step here
  std::vector<std::string> devices = {};  ///< its own; empty: those of the node
};

/// O(variables).
[[nodiscard]] Variables task_environment(const StepOrder& order, const Variables& own,
                                         const std::string& tools, const TaskSeat& seat);

/// The devices of this node as the platform's variable lists them; empty: there is no such list.
[[nodiscard]] std::vector<std::string> devices_of(const Variables& own);

}  // namespace orrery

// node/agent/agents_here.hpp - finds agents that run on this machine as root, and whether its users
// see each other's processes, from /proc.
//
// Read by look_at_machine() for `orrery doctor`; functions hold no state. Cost: one look at every
// process.
#pragma once

#include <string>
#include <vector>

#include "node/machine/machine_facts.hpp"

namespace orrery {

/// Returns root agents by name of their nodes. Agents whose command line or agent.yaml cannot be
/// read are left out.
[[nodiscard]] std::vector<RootAgentFacts> root_agents_here();

/// Whether the options of the newest mount of /proc in `mounts` (the text of /proc/self/mounts)
/// hide the processes of other users.
[[nodiscard]] bool hides_processes(const std::string& mounts);

}  // namespace orrery

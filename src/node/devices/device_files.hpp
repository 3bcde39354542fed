// node/devices/device_files.hpp - which device files belong to which accelerator that a node
// offers, so that jobs can be kept from the files of others.
//
// A function of agent.yaml, of the accelerators found, and of the files themselves; called once,
// when the agent starts.
#pragma once

#include <string>
#include <vector>

#include "node/agent/agent_spec.hpp"
#include "node/devices/discovery.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {

/// Returns the `devices` of agent.yaml, where there are any, else the files that drivers name. A
/// file that was found and is no device file is left out with a note in `discovery`.
/// Errors, with their place in agent.yaml: another number of devices than the node offers; a path
/// that is no device file.
[[nodiscard]] Result<NodeDeviceFiles> node_device_files(const AgentSpec& spec,
                                                        const NodeInventory& inventory,
                                                        Discovery& discovery);

}  // namespace orrery

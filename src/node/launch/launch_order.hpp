// node/launch/launch_order.hpp - makes a keeper's launch from an order: the controller gives the
// program, the node adds what only it knows.
//
// A function of the order, the node's facts and its list of users.
#pragma once

#include "agent/agent.hpp"
#include "node/agent_wire.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/launch/job_user.hpp"

namespace orrery {

/// What a node adds to every launch.
struct NodeLaunchFacts {
  DeviceList devices = DeviceList::kNone;
  std::vector<std::string> device_names;  ///< by device; none: their numbers
  std::uint32_t threads = 1;              ///< cores of one device's part of the node
  std::uint32_t device_cpu = 0;           ///< KeeperLaunch::device_cpu
  std::string openblas_core_type;         ///< see node/machine/openblas_core.hpp
  NodeDeviceFiles files;                  ///< of the devices
  std::uint64_t processes_max = 0;        ///< KeeperLaunch::processes_max
  std::string python;  ///< directory of the packages for jobs, orrery_jax; empty: none
  AgentUser agent;
  std::string name;  ///< of the node, in the fleet
};

/// HOME, USER, LOGNAME and SHELL are those of the user that the job runs as, unless its spec sets
/// them. Where a job of JAX has a PYTHONPATH of its own, the node's packages come after it.
/// Errors: those of job_user().
[[nodiscard]] Result<KeeperLaunch> keeper_launch(const StartKeeper& start,
                                                 const NodeProgram& program,
                                                 const NodeLaunchFacts& node);

}  // namespace orrery

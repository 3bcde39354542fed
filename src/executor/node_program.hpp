// executor/node_program.hpp - what a node receives beside the order to launch: the program of a job
// and the places of its gangs.
//
// A pure function of control's state and the job's text. Cost: O(nodes of the job).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/state.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// Returns the address at which ranks on other nodes reach a node; empty: not known yet.
using NodeAddresses = std::function<std::string(NodeId)>;

/// Returns the program of the present epoch for the node `here`. None: the address of a node of a
/// gang that `here` is part of is not known, so the order must wait. Precondition: the job holds
/// devices, and its spec has a launch.
///
/// The port of a gang's rendezvous follows from job, attempt and gang: in [20000, 32000), below the
/// range from which systems assign ports. If another program has the port, that attempt fails, and
/// the next one uses another port.
[[nodiscard]] std::optional<NodeProgram> node_program(const State& state, const JobSpec& spec,
                                                      const std::pair<JobId, NodeId>& of,
                                                      const NodeAddresses& addresses);

}  // namespace orrery

// executor/node_program.hpp - what one node is told beside the order to launch: the program of a
// job and where its gangs are.
//
// Pure, of control's state and the text of the job. Cost: O(nodes of the job).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/state.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// By which ranks on other nodes reach a node; empty: nobody knows yet.
using NodeAddresses = std::function<std::string(NodeId)>;

/// Of the present epoch, for the node `here`. None: the address of a node of a gang that `here` is
/// part of is not known, so the order has to wait. Precondition: the job holds devices, and its
/// spec has a launch.
///
/// The port of a gang's rendezvous follows from job, attempt and gang: in [20000, 32000), below
/// what systems hand out by themselves. Where somebody else has it that attempt fails, and the next
/// one has another.
[[nodiscard]] std::optional<NodeProgram> node_program(const State& state, const JobSpec& spec,
                                                      const std::pair<JobId, NodeId>& of,
                                                      const NodeAddresses& addresses);

}  // namespace orrery

// executor/agents/lent_nodes.hpp - what sessions with agents ask of those who know which nodes
// resource managers lend (executor/holds/live_holds.hpp).
#pragma once

#include <functional>

#include "base/error.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

struct LentNodes {
  /// Lets an agent in, or not; none: every agent.
  std::function<Status(NodeId, const AgentOpening&)> admit;
  /// The agent of a node says that its hold ends.
  std::function<void(NodeId, const HoldEnding&)> ends;
};

}  // namespace orrery

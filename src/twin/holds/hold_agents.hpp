// twin/holds/hold_agents.hpp - the agents on the nodes of a resource manager: each lives within a
// step of a hold, and is heard once the present controller has let it in.
//
// Owned by the LentFleet, which calls look() every second. The nodes are those of the protocol
// world. An agent that is refused for now asks again after a second; one that is refused for good
// ends, and its step with it. One thread. Cost: O(lent nodes + keepers on them) a call.
// Invariant: no report of an agent that was not let in reaches a controller, and no order reaches
// it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "twin/holds/virtual_manager.hpp"
#include "twin/nodes/protocol_nodes.hpp"

namespace orrery {

class HoldAgents {
 public:
  struct Outside {
    std::function<std::uint64_t()> term;    ///< of the living controller; 0: none lives
    std::function<bool(NodeId)> reachable;  ///< the node has a network
    std::function<Status(NodeId, const AgentHold&)> admit;
    std::function<void(NodeId)> ending;  ///< an agent says that the manager ends its hold
    std::function<void(NodeId)> lost;    ///< the node has lost its power
    std::function<void(NodeId)> exited;  ///< the agent of its step has ended by itself
  };

  /// The nodes from `first` on are the manager's. The context and the nodes must outlive it.
  HoldAgents(ProtocolContext& context, ProtocolNodes& nodes, std::uint32_t first, Outside outside);
  HoldAgents(const HoldAgents&) = delete;
  HoldAgents& operator=(const HoldAgents&) = delete;

  // --- What the manager does with a node

  /// The agent starts some seconds later, or never.
  void begin(NodeId node, const ManagerStep& step, AgentComes comes);
  /// The agent learns that its step will be ended, and tells the controller.
  void warn(NodeId node);
  void end_agent(NodeId node);
  /// The controller tells the agent that it let in to end: the node is not lent any more.
  void dismiss(NodeId node);
  /// All processes of the node's step die.
  void end(NodeId node);
  void freeze(NodeId node, Frozen frozen);

  // --- Agents and the controller

  /// Lets agents ask to be let in, and notices nodes without power.
  void look();
  /// Whether the present controller has let the agent in.
  [[nodiscard]] bool hears(const AgentIdentity& agent) const;
  /// Whether the present controller has let in the agent that lives on the node.
  [[nodiscard]] bool reaches(NodeId node) const;
  /// Whether some controller let in an agent of the node's step.
  [[nodiscard]] bool accepted(NodeId node) const { return at(node).accepted; }
  /// The hold of the node's step, as its agent says; none: there is no step.
  [[nodiscard]] const std::optional<AgentHold>& hold(NodeId node) const {
    return at(node).step.hold;
  }

  /// Notes the keepers that have begun. Returns whether they all began on nodes with an accepted
  /// agent.
  [[nodiscard]] bool note_keepers();
  /// Whether the keeper began in the present step of its node.
  [[nodiscard]] bool is_of_step(const KeeperAt& keeper) const;

 private:
  struct Node {
    ManagerStep step;  ///< run 0: none
    bool accepted = false;
    bool asking = false;                  ///< a request to be let in is under way
    std::optional<AgentIdentity> let_in;  ///< newest agent that was let in
    std::uint64_t term = 0;               ///< of the controller that did
  };

  [[nodiscard]] Node& at(NodeId node) { return lent_[node.value() - first_]; }
  [[nodiscard]] const Node& at(NodeId node) const { return lent_[node.value() - first_]; }
  [[nodiscard]] NodeId id_of(std::size_t n) const { return NodeId::at(first_ + n); }
  void ask(NodeId node, const AgentIdentity& agent);
  void answer(NodeId node, const AgentIdentity& agent);

  ProtocolContext& context_;
  ProtocolNodes& nodes_;
  std::uint32_t first_;
  Outside outside_;
  std::vector<Node> lent_;
  std::map<KeeperAt, std::uint64_t> runs_;  ///< in which each living keeper began
};

}  // namespace orrery

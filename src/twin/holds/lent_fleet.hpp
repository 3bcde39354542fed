// twin/holds/lent_fleet.hpp - the nodes of a protocol world that a resource manager lends: the
// manager, the way to it, the agents in its holds, and the promises about them.
//
// Owned by the ProtocolWorld. A second of the world is a tick of the manager. One thread.
// Cost: see its parts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "twin/holds/hold_agents.hpp"
#include "twin/holds/hold_promises.hpp"
#include "twin/holds/manager_commands.hpp"
#include "twin/holds/virtual_manager.hpp"

namespace orrery {

class LentFleet {
 public:
  struct Parts {
    ProtocolContext& context;
    ProtocolNodes& nodes;
    const Topology& topology;
    std::function<bool(NodeId)> reachable;  ///< the node has a network
    std::function<std::uint64_t()> term;    ///< of the living controller; 0: none lives
    std::function<Status(NodeId, const AgentHold&)> admit;
    std::function<const HoldLink*()> link;  ///< of the living controller; nullptr: none lives
    std::function<void(NodeId)> ending;     ///< an agent says that its hold ends
    std::function<void(const ManagerReport&)> report;
    std::function<void(NodeId)> fence;  ///< an operator confirms that a node is empty
  };
  /// The parts must outlive it.
  LentFleet(Parts parts, const ManagerRules& rules);
  LentFleet(const LentFleet&) = delete;
  LentFleet& operator=(const LentFleet&) = delete;

  /// What a controller needs to know of the manager.
  [[nodiscard]] HoldSetup setup(std::uint64_t term) const;
  /// An order leaves a controller with that link.
  void carry_out(const ManagerOrder& order, const HoldLink& link);
  /// Events were applied.
  void note(std::span<const Event> events);
  /// Another controller begins.
  void begin() { promises_.begin(); }

  /// Whether the present controller hears the agent.
  [[nodiscard]] bool hears(const AgentIdentity& agent) const {
    return !manager_.lends(agent.node) || agents_.hears(agent);
  }
  /// Whether orders of the present controller reach the node.
  [[nodiscard]] bool reaches(NodeId node) const {
    return !manager_.lends(node) || agents_.reaches(node);
  }

  /// A step of the world is over.
  void note_step();
  /// A step of the world is over, after which a controller lives.
  void check(const State& state, const HoldLink& link);
  void make_calm();
  /// In the calm phase an operator looks after nodes that have been lost for long.
  void tend(const State& state);
  /// What is not yet as it has to be in the end; empty: nothing.
  [[nodiscard]] std::string unsettled(const State& state, const HoldLink& link) const {
    return promises_.unsettled(state, link, rules_.keep);
  }

 private:
  void tick();
  [[nodiscard]] Status admit(NodeId node, const AgentHold& agent);

  Parts parts_;
  ManagerRules rules_;
  VirtualManager manager_;
  HoldAgents agents_;
  ManagerCommands commands_;
  HoldPromises promises_;
  std::vector<std::uint32_t> lost_;  ///< by node: how often an operator found it lost in a row
  Instant calm_since_ = Instant::max();
};

}  // namespace orrery

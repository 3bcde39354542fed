// agent/executor.hpp - what carries out control's decisions: the link to real agents (FleetLink),
// or the twin's world (twin/world/world.hpp).
//
// A state machine: calls go in, effects wait in take(). ControlHost drives it: it hands the inputs
// among the effects to the core, and lets an order leave only when the inputs before it are
// durable. Slurm and Kubernetes lend nodes on which own agents run, so their nodes are reached by
// FleetLink as well. One thread; time is the host's and never goes back.
#pragma once

#include <variant>
#include <vector>

#include "agent/message.hpp"
#include "control/action.hpp"
#include "control/input.hpp"

namespace orrery {

class State;

/// InputKind: for control. Order: for the agent of order.to.node.
using ExecutorEffect = std::variant<InputKind, Order>;

class Executor {
 public:
  virtual ~Executor() = default;
  /// Carries out an action on ranks, clocks or nodes. `state` is control's, after the events of the
  /// action. Actions are idempotent; one for an older attempt or epoch has no effect.
  virtual void carry_out(const Action& action, const State& state, Instant now) = 0;
  /// Handles a report of an agent. Precondition: its node is one of the fleet's.
  virtual void deliver(const Report& report, Instant now) = 0;
  /// Handles one thing that is due. Precondition: next_due() <= now.
  virtual void advance(const State& state, Instant now) = 0;
  /// When advance() must be called next.
  [[nodiscard]] virtual Instant next_due() const = 0;
  /// Returns the effects in order; each effect is returned once.
  [[nodiscard]] virtual std::vector<ExecutorEffect> take() = 0;
};

}  // namespace orrery

// node/health/node_fitness.hpp - whether a node is well, by the operator's programs and what ranks
// report: a failure here is the node's fault, never the job's.
//
// Owned by the agent's process, used on its loop. It repairs nothing itself:
//   1. With a health check the node is well once the check passes.
//   2. Without one it is well unless its newest prologue or epilogue failed; then an operator has
//      to look at it.
//   3. A claim of ranks counts once the controller has taken the node out of service for it, and a
//      burn-in that passes clears it. A burn-in that failed has to be run again by an operator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/message.hpp"
#include "node/health/health_check.hpp"
#include "node/health/node_burn_in.hpp"

namespace orrery {

class NodeFitness {
 public:
  struct Setup {
    std::optional<HealthSpec> check;
    NodeBurnIn::Setup burn_in;
  };
  struct Events {
    std::function<void(const HealthFault&)> fault;  ///< a fault for the controller
    std::function<void()> mended;                   ///< the controller waits for this
    /// The node has become unwell, a check has passed, or the burn-in has another state. All other
    /// changes of complaint() are found when it is read again.
    std::function<void()> changed;
    std::function<bool()> idle;  ///< whether no attempt is here, which a burn-in would disturb
  };

  /// `real` outlives this object.
  NodeFitness(RealEnv& real, const Log& log, Setup setup, Events events);
  NodeFitness(const NodeFitness&) = delete;
  NodeFitness& operator=(const NodeFitness&) = delete;

  /// Begins to check the node, if there is a check.
  void begin();
  /// Ends the programs that run.
  void end();

  void note_prologue_passed();
  /// Notes that a prologue or epilogue failed. The node accepts no work before it is mended.
  void note_hook_failed(const std::string& evidence);
  /// Notes that the ranks of an attempt claim a fault of the node. All other work here goes on.
  void note_claim(const AttemptId& id, const std::string& evidence);
  /// Notes that an attempt has ended: a burn-in may have waited for it.
  void note_attempt_ended() { try_burn_in(); }
  /// Notes that the controller waits for the node to be well.
  void begin_mending();
  /// Runs a burn-in, unless one runs or work is here.
  void run_burn_in();
  /// Stops a running burn-in: work takes precedence over it.
  void leave_burn_in();

  /// Why the node is unwell; empty: it is well.
  [[nodiscard]] std::string complaint() const;
  /// State or result of the newest burn-in; empty: there was none.
  [[nodiscard]] const std::string& burn_in_state() const { return burn_in_.state(); }

 private:
  void refuse_work(const std::string& evidence);
  void mend_if_well();
  void try_burn_in();
  void note_burn_in_end();
  [[nodiscard]] Instant wall() const { return real_.env().clock.now_wall(); }

  RealEnv& real_;
  Log log_;
  std::optional<HealthSpec> spec_;
  Events events_;
  NodeBurnIn burn_in_;
  std::unique_ptr<HealthCheck> check_;  ///< while it runs; none: there is none
  std::string hook_complaint_;  ///< why the newest prologue or epilogue failed; empty: it did not
  bool mending_ = false;        ///< the controller waits for the node to be well
};

}  // namespace orrery

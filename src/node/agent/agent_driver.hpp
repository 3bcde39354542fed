// node/agent/agent_driver.hpp - drives the Agent (agent/agent.hpp) of a real node: passes inputs to
// it at the time of CLOCK_BOOTTIME, has its effects carried out, and wakes it when it is due.
//
// Owned by the agent's process, used on its loop.
// Invariant: between two callbacks of the loop no effect waits, and the timer is armed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>

#include "agent/agent.hpp"
#include "base/env.hpp"
#include "base/system/real_clock.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

class AgentDriver {
 public:
  /// Carries out an effect. `program`: that of the order that is being obeyed; nullptr: the effect
  /// is of no order.
  using CarryOut = std::function<void(const AgentEffect& effect, const NodeProgram* program)>;

  /// `carry_out` may call this object, also act(): effects that come meanwhile follow in order.
  /// `failure_delay`: the failure of an attempt is reported that much later. A resource manager
  /// that ends a hold signals ranks and agent one after the other; the controller is to hear of the
  /// end of the hold first, because a failure that follows from it is none of the program's or
  /// node's.
  AgentDriver(Timers& timers, CarryOut carry_out, Duration failure_delay = {})
      : timers_(timers), carry_out_(std::move(carry_out)), failure_delay_(failure_delay) {}
  AgentDriver(const AgentDriver&) = delete;
  AgentDriver& operator=(const AgentDriver&) = delete;
  ~AgentDriver();

  /// Makes the agent, with the attempts whose keepers live here. Precondition: once, before all
  /// other inputs; act() follows.
  void begin(const AgentSetup& setup, std::span<const AttemptId> found);
  [[nodiscard]] bool begun() const { return agent_.has_value(); }
  [[nodiscard]] bool attempts_acknowledged() const {
    return !agent_ || agent_->attempts_acknowledged();
  }

  /// Obeys an order, and acts.
  void obey(const NodeOrder& order);
  // Inputs whose effects wait for act().
  void keeper_report(const AttemptReport& report);
  void keeper_exit(const AttemptId& id);
  void fault(const HealthFault& fault) { agent_->on_fault(fault, now()); }
  void mended() { agent_->on_mended(now()); }
  void signals(const Signals& signals) { agent_->on_signals(signals); }
  /// Has all effects carried out, then waits for the agent's next instant.
  void act() { act_for(nullptr); }

 private:
  void act_for(const NodeProgram* program);
  void arm_timer();
  /// Reports a failure whose delay is over.
  void report_failure(const AttemptId& id);
  [[nodiscard]] Instant now() const { return clock_.now_boot(); }

  Timers& timers_;
  CarryOut carry_out_;
  RealClock clock_;
  std::optional<Agent> agent_;
  std::optional<TimerId> timer_;
  bool acting_ = false;
  Duration failure_delay_;
  /// A failure of an attempt, until its keeper exits.
  struct Failure {
    AttemptReport report;          ///< the newest one
    std::optional<TimerId> delay;  ///< none: it was reported
  };
  std::map<AttemptId, Failure> failures_;
};

}  // namespace orrery

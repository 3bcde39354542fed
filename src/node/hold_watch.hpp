// node/hold_watch.hpp - how an agent ends that runs within a hold of a resource manager.
//
// Made by the agent's process for its run, on its loop; clock and timers outlive it. At SIGTERM, by
// which a resource manager ends a hold, the controller is told, so that it ends the ranks here and
// their work goes on elsewhere (ranks that the manager signals itself fail a moment later: see
// AgentDriver); the agent waits until none is left, and kills them itself before
// the resource manager does (30 s after SIGTERM: KillWait of Slurm). An agent without a controller
// ends after ten minutes, so that unused holds go back, unless an attempt is on the node: one whose
// end no controller has acknowledged stays, because its result would be lost. The planned end of a
// hold, which the controller sends, is no error of the agent.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// Returns the outcome of an agent that leaves its node because of `why`: success if the agent runs
/// in `hold` (HoldName::key; empty: in none) and the hold has ended as planned; else an error
/// (kInput).
[[nodiscard]] Status outcome_of_leaving(std::string_view hold, const Error& why);

class HoldWatch {
 public:
  /// What the agent can be asked, and what it is told to do.
  struct Agent {
    std::function<bool()> connected;  ///< whether a controller has welcomed it
    /// Whether no attempt is on the node, and the controller knows how those before ended.
    std::function<bool()> idle;
    std::function<void(const HoldEnding&)> tell;      ///< sends to the controller
    std::function<void(std::function<void()>)> kill;  ///< kills all ranks, then calls back
    std::function<void()> stop;                       ///< ends the agent
  };
  struct Setup {
    const Clock& clock;
    Timers& timers;
    Log log;
    std::string hold;  ///< HoldName::key; empty: the agent runs in no hold
  };
  HoldWatch(const Setup& setup, Agent agent);
  HoldWatch(const HoldWatch&) = delete;
  HoldWatch& operator=(const HoldWatch&) = delete;
  ~HoldWatch();

  /// SIGTERM has come.
  void end();

 private:
  void call_after(Duration delay, void (HoldWatch::*then)());
  void look_for_controller();
  void tell();
  void stop_when_idle();

  Setup setup_;
  Agent agent_;
  Instant heard_;                ///< when a controller was last connected
  std::optional<Instant> ends_;  ///< when SIGTERM came
  std::optional<Instant> told_;  ///< when the controller was last told
  bool killed_ = false;          ///< the ranks were killed
  std::optional<TimerId> timer_;
};

}  // namespace orrery

// node/agent/hold_watch.hpp - how an agent ends that runs within a hold of a resource manager.
//
// Made by the agent's process for its run, on its loop; the parts outlive it. At SIGTERM, by which
// a resource manager ends a hold, the controller is told, so that it ends the ranks here and their
// work goes on elsewhere; the agent waits until none is left, and kills them itself before the
// resource manager does (30 s after SIGTERM: KillWait of Slurm). An agent that no controller
// answers ends when no rank runs: a hold that nobody uses is not kept.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "node/agent/controller_session.hpp"
#include "node/attempts/node_attempts.hpp"

namespace orrery {

class HoldWatch {
 public:
  struct Parts {
    Env env;
    Log log;
    ControllerSession& session;
    NodeAttempts& attempts;
    std::function<void()> stop;  ///< ends the agent
  };
  /// `hold`: as in AgentOpening; empty: the agent runs in none.
  HoldWatch(Parts parts, std::string hold);
  HoldWatch(const HoldWatch&) = delete;
  HoldWatch& operator=(const HoldWatch&) = delete;
  ~HoldWatch();

  /// SIGTERM has come.
  void end();

 private:
  void call_after(Duration delay, void (HoldWatch::*then)());
  void look_for_controller();
  void stop_when_empty();

  Parts parts_;
  std::string hold_;
  Instant heard_;                ///< when a controller was last connected
  std::optional<Instant> ends_;  ///< when SIGTERM came
  std::optional<TimerId> timer_;
};

}  // namespace orrery

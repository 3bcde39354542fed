// executor/live/live_host.hpp - the host of a running controller's core on the loop: inputs get
// control's time, a timer wakes the controller when something is due, and a halt has a text for the
// operator.
//
// Owned by the controller, on its loop. Whoever gave the host inputs calls changed() afterwards,
// once for all of them, so that the timer follows.
// Invariant: at most one timer waits, for the time of the last wake_at().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "executor/control_host.hpp"
#include "executor/live/control_clock.hpp"

namespace orrery {

class LiveHost {
 public:
  struct Options {
    ControlClock clock;
    std::string directory;          ///< the controller's, for the text of a halt
    std::function<void()> wake;     ///< called when the time of wake_at() has come
    std::function<void()> changed;  ///< called by changed(): computes the time to wake again
  };
  LiveHost(Timers& timers, Options options, std::unique_ptr<AgentHost> host);
  LiveHost(const LiveHost&) = delete;
  LiveHost& operator=(const LiveHost&) = delete;
  ~LiveHost();

  [[nodiscard]] AgentHost& control() { return *host_; }
  [[nodiscard]] const State& state() const { return host_->state(); }
  [[nodiscard]] const Core& core() const { return host_->core(); }
  [[nodiscard]] const FleetLink& link() const { return host_->link(); }
  [[nodiscard]] const ControlClock& clock() const { return options_.clock; }
  [[nodiscard]] Instant now() const { return options_.clock.now(); }

  /// Handles an input now.
  void handle(InputKind what, const std::string& request_id = {},
              ControlHost::Answered answered = {});
  /// Handles everything that is due at `until`.
  void advance(Instant until);
  void changed() const { options_.changed(); }
  /// Wakes the controller at this time and at no other; max: never.
  void wake_at(Instant due);

  [[nodiscard]] bool is_halted() const { return !host_->halted_by().empty(); }
  /// Returns why the controller is halted, and what an operator can do; empty: it is not halted.
  [[nodiscard]] std::string halted() const;
  /// Error (kEnvironment): halted().
  [[nodiscard]] Status check_running() const;

 private:
  Timers& timers_;
  Options options_;
  std::unique_ptr<AgentHost> host_;
  std::optional<TimerId> timer_;
};

}  // namespace orrery

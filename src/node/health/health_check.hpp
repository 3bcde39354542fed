// node/health/health_check.hpp - runs the operator's check of the node periodically, and counts
// failures.
//
// Owned by the node's NodeFitness, on the loop. One process at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "node/agent/agent_spec.hpp"
#include "node/health/hook_process.hpp"

namespace orrery {

class HealthCheck {
 public:
  struct Events {
    std::function<void()> passed;  ///< each time
    /// Called after as many failures in a row as the spec gives; not again before a run has passed.
    std::function<void(const std::string& evidence)> failed;
  };

  /// The first run begins at once. `real` outlives this object.
  HealthCheck(RealEnv& real, HealthSpec spec, Events events);
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;
  ~HealthCheck();

  /// Starts a run now, unless one is in progress.
  void run();
  /// Returns why the last run failed; empty: it passed, or none has ended.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

 private:
  void note(const std::string& failure);

  RealEnv& real_;
  HealthSpec spec_;
  Events events_;
  std::unique_ptr<HookProcess> process_;
  std::optional<TimerId> timer_;
  std::uint32_t failures_ = 0;  ///< in a row
  std::string complaint_;
};

}  // namespace orrery

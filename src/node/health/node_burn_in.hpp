// node/health/node_burn_in.hpp - the burn-in of a node: runs it, and remembers what only a burn-in
// that passes clears.
//
// Owned by NodeFitness, used on the loop. One process at a time.
// Invariant: the complaint is in the file, so that the next agent does not mend the node either.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "node/agent/agent_spec.hpp"
#include "node/health/hook_process.hpp"

namespace orrery {

class NodeBurnIn {
 public:
  struct Setup {
    std::string node;  ///< its name, for the program
    std::string file;  ///< holds the complaint
    HookSpec spec;
  };
  /// Called after each run that ends by itself, when state() and complaint() already tell how.
  using Ended = std::function<void()>;

  /// Reads the file. `real` outlives this object.
  NodeBurnIn(RealEnv& real, const Log& log, Setup setup, Ended ended);
  NodeBurnIn(const NodeBurnIn&) = delete;
  NodeBurnIn& operator=(const NodeBurnIn&) = delete;

  /// Starts a run. Precondition: none runs.
  void run();
  /// Notes why a run that was asked for has not begun.
  void decline(const std::string& why) { state_ = "not begun: " + why; }
  /// Stops the run, if there is one, because work has come, which takes precedence. Returns whether
  /// there was one.
  bool stop();
  /// Forgets the run without noting anything.
  void end() { process_.reset(); }
  /// Notes that ranks claim a fault that only a burn-in can clear. A failed burn-in stays: an
  /// operator has to run it again.
  void claim(const std::string& evidence);

  [[nodiscard]] bool running() const { return process_ != nullptr; }
  /// State or result of the newest run; empty: there was none.
  [[nodiscard]] const std::string& state() const { return state_; }
  /// Why only a burn-in that passes makes the node well; empty: it is well.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  /// Whether the complaint is a failed burn-in, and not a claim of ranks.
  [[nodiscard]] bool failed() const;

 private:
  void note_end(const std::string& failure);
  void write() const;
  [[nodiscard]] Instant now() const { return clock_.now_boot(); }

  RealEnv& real_;
  RealClock clock_;
  Log log_;
  Setup setup_;
  Ended ended_;
  std::unique_ptr<HookProcess> process_;  ///< while it runs
  Instant began_;
  std::string complaint_;
  std::string state_;
};

}  // namespace orrery

// node/attempts/attempt_hooks.hpp - the operator's programs around the ranks of one attempt: the
// prologue before, the epilogue after.
//
// Owned by the attempt, used on the loop. One of them runs at a time, and each at most once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/agent/agent_spec.hpp"
#include "node/health/hook_process.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {

class AttemptHooks {
 public:
  struct Setup {
    std::optional<HookSpec> prologue;
    std::optional<HookSpec> epilogue;
    std::string node;  ///< its name, for the programs
  };
  enum class Step : std::uint8_t { kPrologue, kRanks, kEpilogue, kClean };

  /// Both outlive this object.
  AttemptHooks(RealEnv& real, const Setup& setup) : real_(real), setup_(setup) {}
  AttemptHooks(const AttemptHooks&) = delete;
  AttemptHooks& operator=(const AttemptHooks&) = delete;

  /// Sets the variables that the programs get.
  void note_launch(const AttemptId& id, const KeeperLaunch& launch);
  /// Runs the prologue and calls `ended` later; the step is then kRanks. Returns whether there is
  /// one.
  [[nodiscard]] bool run_prologue(HookProcess::Ended ended);
  /// Runs the epilogue and calls `ended` later; the step is then kClean. Returns false, and runs
  /// nothing, where there is none or where the step is not kRanks.
  [[nodiscard]] bool run_epilogue(HookProcess::Ended ended);
  /// Kills the program that runs; `ended` is not called.
  void stop() { process_.reset(); }
  [[nodiscard]] Step step() const { return step_; }

 private:
  void run(const HookSpec& spec, Step then, HookProcess::Ended ended);

  RealEnv& real_;
  const Setup& setup_;
  Step step_ = Step::kRanks;
  std::vector<std::pair<std::string, std::string>> variables_;
  std::unique_ptr<HookProcess> process_;  ///< the program that runs now
};

}  // namespace orrery

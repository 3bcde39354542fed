// node/attempts/node_attempts.hpp - the attempts on this node, by their ids: starts them, finds
// those that an earlier agent left, passes orders to them and their reports to the agent.
//
// Owned by the agent's process, used on its loop. Files of attempts that are over are removed in
// pieces, so that heartbeats are sent while a job's files are removed.
// Invariant: an attempt that is not here has no keeper, and its directory is sealed before the
// agent hears that its keeper has exited.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "node/agent/agent_driver.hpp"
#include "node/agent/node_clocks.hpp"
#include "node/attempts/node_attempt.hpp"
#include "node/health/node_fitness.hpp"
#include "node/launch/attempt_directories.hpp"
#include "node/launch/launch_order.hpp"

namespace orrery {

class NodeAttempts final : public AttemptEvents {
 public:
  struct Setup {
    std::string directory;  ///< parent of the attempts' directories
    std::string run;        ///< parent of their files that end with the boot
    NodeLaunchFacts facts;
    AttemptHooks::Setup hooks;
    NodeAttempt::MakeKeeper make_keeper;
  };
  /// The parts of the agent that attempts use, all borrowed.
  struct Parts {
    RealEnv& real;
    Log log;
    ControllerSession& session;
    AgentDriver& agent;
    NodeClocks& clocks;
    NodeFitness& health;
    CommandRelay& commands;
  };

  NodeAttempts(const Parts& parts, Setup setup);
  NodeAttempts(const NodeAttempts&) = delete;
  NodeAttempts& operator=(const NodeAttempts&) = delete;
  ~NodeAttempts() override;

  /// Returns attempts whose keepers live; all others are sealed. Precondition: called once, before
  /// any attempt starts. Errors: the directory.
  [[nodiscard]] Result<std::vector<AttemptId>> find_living() { return directories_.find_living(); }
  /// Takes over the attempts that were found.
  void adopt(const std::vector<AttemptId>& living);

  void carry_out(const StartKeeper& start, const NodeProgram& program);
  /// `program`: of the order that is obeyed, of which a launch takes the gangs; nullptr: the effect
  /// is of no order.
  void carry_out(const TellKeeper& tell, const NodeProgram* program);
  void answer(const AttemptLogQuestion& question);
  /// Sends the notes of all attempts, on a new stream.
  void send_notes();
  /// Corrects the reports after clocks of devices have changed.
  void correct_clocks();
  /// Kills all ranks, since the attempts here belong to no controller any more. Once no rank runs
  /// it releases the keepers and calls `clear`, perhaps at once.
  void abandon(std::function<void()> clear);

  [[nodiscard]] std::size_t size() const { return attempts_.size(); }
  [[nodiscard]] bool empty() const { return attempts_.empty(); }
  /// Returns the keeper of an attempt; nullptr: it does not run here.
  [[nodiscard]] KeeperHandle* living_keeper(const AttemptId& id);

  [[nodiscard]] Status prepare(const AttemptId& id, const KeeperLaunch& launch) override;
  void add_clocks(AttemptReport& report) const override { clocks_.add_to(report); }
  void on_report(const AttemptReport& report) override;
  void on_prologue_passed() override { health_.note_prologue_passed(); }
  void on_hook_failed(const std::string& evidence) override { health_.note_hook_failed(evidence); }
  void on_claim(const AttemptId& id, const std::string& evidence) override;
  void on_keeper_end(const AttemptId& id) override;
  void on_unstarted(const AttemptReport& report) override;
  void on_over(AttemptId id, const std::optional<AttemptReport>& unreported) override;

 private:
  NodeAttempt& make(const AttemptId& id);
  void end_if_clear();
  void remove_old();
  [[nodiscard]] Instant wall() const { return real_.env().clock.now_wall(); }

  RealEnv& real_;
  Log log_;
  ControllerSession& session_;
  AgentDriver& agent_;
  NodeClocks& clocks_;
  NodeFitness& health_;
  CommandRelay& commands_;
  Setup setup_;
  AttemptDirectories directories_;
  std::map<AttemptId, std::unique_ptr<NodeAttempt>> attempts_;
  std::optional<TimerId> removal_;  ///< of the next files
  std::function<void()> clear_;     ///< awaits that no rank runs; empty: nothing does
};

}  // namespace orrery

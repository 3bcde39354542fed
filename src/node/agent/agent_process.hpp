// node/agent/agent_process.hpp - the agent on a real machine: its loop, and how its parts are
// joined. Agent (agent/agent.hpp) decides; the parts carry out what it decides, and report.
//
// Built by main() of orrery-agent; lives as long as the process. A directory
// (node/agent/agent_directory.hpp) has one agent. Running ranks do not need it: keepers go on while
// it is gone, and the next agent finds them. The times that it sends are of CLOCK_BOOTTIME. All on
// the loop of `real`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "node/agent/agent_directory.hpp"
#include "node/agent/agent_driver.hpp"
#include "node/agent/agent_spec.hpp"
#include "node/agent/controller_session.hpp"
#include "node/agent/node_clocks.hpp"
#include "node/agent/node_readings.hpp"
#include "node/attempts/node_attempts.hpp"
#include "node/controller_channel.hpp"
#include "node/exec/command_relay.hpp"
#include "node/health/node_fitness.hpp"
#include "node/hold_watch.hpp"

namespace orrery {

struct AgentProcessSetup {
  std::string directory;  ///< absolute
  std::string keeper;     ///< path of the program orrery-keeper
  AgentOpening opening;   ///< its incarnation is filled in
  NodeLaunchFacts facts;
  std::vector<std::string> notes;              ///< what could not be found out of the machine
  std::vector<std::string> file_changes = {};  ///< lines of agent.yaml since it was applied last
  TelemetrySetup telemetry;
  AgentSpec spec;  ///< with a burn-in
};

class AgentProcess final : public ChannelEvents {
 public:
  /// All borrowed. Within a hold it waits for another agent of the directory to end. Errors: those
  /// of AgentDirectory::open().
  [[nodiscard]] static Result<std::unique_ptr<AgentProcess>> open(RealEnv& real,
                                                                  ControllerChannel& channel,
                                                                  const Log& log,
                                                                  AgentProcessSetup setup);
  /// For open(), which has taken the directory.
  AgentProcess(RealEnv& real, ControllerChannel& channel, const Log& log,
               std::pair<AgentProcessSetup, AgentDirectory> place);

  /// Runs until SIGTERM, SIGINT or stop(); within a hold of a resource manager, until no rank runs
  /// any more after that, or its patience is over, or until the hold has ended as planned.
  /// Precondition: the signals are blocked. Errors: the controller refuses this agent; no
  /// descriptor for signals.
  [[nodiscard]] Status run();
  void stop();

  void on_welcome(const AgentWelcome& welcome) override;
  void on_order(const NodeOrder& order) override;
  void on_log_question(const AttemptLogQuestion& question) override;
  void on_burn_in() override;
  void on_command(const AttemptExecOpen& asked) override;
  void on_command_input(const ExecInput& input) override;
  void on_lost(const Error& why) override;

 private:
  void log_beginning();
  [[nodiscard]] Status begin(const AgentWelcome& welcome);
  void carry_out(const AgentEffect& effect, const NodeProgram* program);
  void fail(Status why);
  void leave_node(const Error& why);

  [[nodiscard]] HoldWatch::Agent hold_agent();
  [[nodiscard]] NodeClocks::Events clock_events();
  [[nodiscard]] NodeFitness::Events health_events();
  [[nodiscard]] Instant wall() const { return real_.env().clock.now_wall(); }

  RealEnv& real_;
  Log log_;
  AgentProcessSetup setup_;
  AgentDirectory directory_;
  ControllerSession session_;
  AgentDriver agent_;  ///< begins with the first welcome
  NodeClocks clocks_;
  NodeFitness health_;
  CommandRelay commands_;
  NodeAttempts attempts_;
  NodeReadings readings_;
  std::optional<Status> outcome_;  ///< once the process is to end
};

}  // namespace orrery

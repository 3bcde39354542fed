// node/agent/agent_process.hpp - the agent on a real machine: Agent (agent/agent.hpp) decides, this
// class starts and finds keepers, keeps time and communicates with keepers and the controller.
//
// Built by main() of orrery-agent; lives as long as the process. A directory has one agent, which
// holds the directory's lock. Running ranks do not need it: keepers go on while it is gone, and the
// next agent finds them. The times that it sends are of CLOCK_BOOTTIME. All on the loop of `real`.
//
//   DIR/lock         held by the agent
//   DIR/incarnation  how often an agent was started here
//   DIR/cluster      cluster and node that the attempts here belong to
//   DIR/clocks       accelerators that do not run at their full clock
//   DIR/attempts/    node/launch/attempt_directories.hpp
//   DIR/run          node/launch/run_directory.hpp
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "node/agent/agent_spec.hpp"
#include "node/agent/health_check.hpp"
#include "node/agent/hook_process.hpp"
#include "node/controller_channel.hpp"
#include "node/descriptor_watch.hpp"
#include "node/devices/device_clocks.hpp"
#include "node/devices/telemetry.hpp"
#include "node/keeper/keeper_link.hpp"
#include "node/launch/attempt_directories.hpp"
#include "node/launch/launch_order.hpp"

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

/// Whether an agent can use the directory. Error (kInput): its path is too long for sockets.
[[nodiscard]] Status check_agent_directory(Storage& storage, const std::string& directory);

class AgentProcess final : public ChannelEvents, public KeeperEvents {
 public:
  /// All borrowed. Precondition: SIGTERM and SIGINT are blocked. Errors: a directory whose path is
  /// too long for sockets in it, that another agent holds, or that cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<AgentProcess>> open(RealEnv& real,
                                                                  ControllerChannel& channel,
                                                                  const Log& log,
                                                                  AgentProcessSetup setup);
  AgentProcess(RealEnv& real, ControllerChannel& channel, const Log& log, AgentProcessSetup setup);

  /// Runs until SIGTERM, SIGINT or stop(). Errors: the controller refuses this agent.
  [[nodiscard]] Status run();
  void stop() { done_ = true; }

  void on_welcome(const AgentWelcome& welcome) override;
  void on_order(const NodeOrder& order) override;
  void on_log_question(const AttemptLogQuestion& question) override;
  void on_burn_in() override;
  void on_command(const AttemptExecOpen& asked) override;
  void on_command_input(const ExecInput& input) override;
  void on_lost(const Error& why) override;

  void on_status(const AttemptId& id, const KeeperStatus& status) override;
  void on_paces(const AttemptId& id, const RankPaces& paces) override;
  void on_wrong(const AttemptId& id, const WrongResults& wrong) override;
  void on_tail(const AttemptId& id, const LogTail& tail) override;
  void on_command_output(const ExecOutput& output) override;
  void on_command_end(const ExecEnd& end) override;
  void on_break(const AttemptId& id) override;
  void on_over(const AttemptId& id, const std::string& failure) override;

 private:
  /// A pending question for the end of a log, asked by the controller or, without an id, by the
  /// agent itself to keep the log.
  struct AskedLog {
    std::optional<std::uint64_t> id;
    LogQuestion log;  ///< from kFromTail: its end
    std::optional<Instant> since = std::nullopt;
  };
  /// An attempt whose keeper lives, or whose prologue or epilogue runs.
  struct Attempt {
    std::unique_ptr<KeeperLink> link;
    std::unique_ptr<HookProcess> hook;  ///< the hook that runs now
    enum class Step : std::uint8_t { kPrologue, kRanks, kEpilogue, kClean } step = Step::kRanks;
    bool over = false;     ///< no process of its keeper or ranks is left
    AttemptReport report;  ///< the newest one
    AttemptNotes said;
    std::deque<AskedLog> asked;  ///< questions to the keeper, which answers in order
    bool kept = false;           ///< the ends of its logs are on their way to the controller
    bool released = false;       ///< it may go once they are
    bool claimed = false;        ///< whether its ranks reported a fault of the node
    std::vector<std::pair<std::string, std::string>> variables;  ///< for its hooks
    std::optional<KeeperLaunch> launch;                          ///< until its prologue is done
  };
  using Attempts = std::map<AttemptId, Attempt>;

  [[nodiscard]] Status prepare();
  [[nodiscard]] Status lock_directory();
  [[nodiscard]] Status count_incarnation();
  [[nodiscard]] Status watch_signals();
  [[nodiscard]] Status begin(const AgentWelcome& welcome);
  [[nodiscard]] Status check_cluster(const AgentWelcome& welcome, std::size_t living);
  void fail(Status why);
  void leave_node(const Error& why);
  void end_if_clear();
  void open_channel();
  void open_later();

  /// Does all that the agent wants, then waits for its next instant.
  void act();
  void apply(const Report& report);
  void apply(const StartKeeper& start);
  void apply(const TellKeeper& tell);
  void apply(const BeginMending& mending);
  void start_keeper(const AttemptId& id, const KeeperLaunch& launch);
  [[nodiscard]] Status run_keeper(const AttemptId& id, const KeeperLaunch& launch);
  /// Reports an attempt whose keeper never came to life.
  void note_unstarted(const AttemptId& id, AttemptEnd end);
  void tell_notes(const AttemptId& id, AttemptNotes notes);
  void note_over(const AttemptId& id);
  void note_reading(const NodeReading& reading);
  void note_ended(const AttemptId& id);
  void tell_errors(const AttemptId& id);

  // Prologue, epilogue, health (agent_process_hooks.cpp).
  using HookEnded = void (AgentProcess::*)(const AttemptId& id, const std::string& failure);
  void note_launch(const AttemptId& id, const KeeperLaunch& launch);
  void begin_prologue(const AttemptId& id, const KeeperLaunch& launch);
  void end_prologue(const AttemptId& id, const std::string& failure);
  /// Handles an order to end ranks that have not begun.
  void leave_prologue(const AttemptId& id, const OrderStamp& stamp);
  [[nodiscard]] bool wants_epilogue(const Attempt& attempt) const;
  void begin_epilogue(const AttemptId& id);
  void end_epilogue(const AttemptId& id, const std::string& failure);
  [[nodiscard]] std::unique_ptr<HookProcess> run_hook(const AttemptId& id, const HookSpec& spec,
                                                      HookEnded ended);
  void begin_health();
  void end_burn_in(const std::string& failure);
  void write_burn_in();
  /// Stops a running burn-in: work takes precedence over it.
  void leave_burn_in();
  /// Reports the node as unwell; it accepts no work before it is mended.
  void refuse_work(const std::string& evidence);
  void mend_if_well();
  void try_what_ranks_found();
  void tell_reading();
  [[nodiscard]] std::string complaint() const;
  void arm_timer();

  // Clocks of accelerators that have a driver (agent_process_clocks.cpp).
  [[nodiscard]] std::string clocks_file() const { return setup_.directory + "/clocks"; }
  [[nodiscard]] std::string burn_in_file() const { return setup_.directory + "/burn-in"; }
  [[nodiscard]] bool has_clocks() const { return setup_.facts.device_cpu == 0; }
  void note_clocks(const AttemptId& id, const std::vector<RankShare>& shares);
  void set_clocks();
  void write_clocks();
  void note_clock(const DeviceClocks::Change& change, const Status& answer);
  /// Adds the clocks that are held to a keeper's report.
  [[nodiscard]] AttemptReport with_clocks(AttemptReport report) const;

  // Logs (agent_process_logs.cpp).
  void ask(Attempt& attempt, const AskedLog& asked);
  void answer_from_files(const AttemptId& id, const AskedLog& asked);
  void answer(const AttemptId& id, const AskedLog& asked, AttemptLogPart part);
  void keep_logs(const AttemptId& id, Attempt& attempt);
  void release_if_kept(Attempt& attempt);

  // Commands beside ranks (agent_process_commands.cpp).
  /// Ends all commands, since the controller is out of reach.
  void close_commands();
  /// Tells the controller that the commands of an attempt have ended.
  void end_commands(const AttemptId& id, const std::string& why);
  void remove_old();
  [[nodiscard]] Instant now() const { return clock_.now_boot(); }
  [[nodiscard]] Instant wall() const { return clock_.now_wall(); }

  RealEnv& real_;
  ControllerChannel& channel_;
  Log log_;
  AgentProcessSetup setup_;
  RealClock clock_;
  FileDescriptor lock_;
  std::unique_ptr<DescriptorWatch> signals_;
  std::optional<AttemptDirectories> directories_;  ///< set by prepare()
  DeviceClocks clocks_;
  std::unique_ptr<Telemetry> telemetry_;  ///< while it runs
  std::optional<NodeReading> reading_;    ///< the newest
  std::unique_ptr<HealthCheck> health_;   ///< while it runs; none: there is none
  std::string hook_complaint_;  ///< why the newest prologue or epilogue failed; empty: it did not
  std::unique_ptr<HookProcess> burn_in_;  ///< while it runs
  Instant burn_in_began_;
  std::string burn_in_said_;  ///< state or result of the newest burn-in; empty: there was none
  /// Why only a burn-in that passes makes the node well; empty: it is well. Kept in a file.
  std::string burn_in_complaint_;
  std::optional<Error> replaced_;  ///< another agent has the node
  bool mending_ = false;           ///< the controller waits for the node to be well
  std::optional<Agent> agent_;     ///< from the first welcome on
  AgentWelcome welcome_;           ///< the first
  Attempts attempts_;
  std::map<std::uint64_t, AttemptId> commands_;  ///< running commands, by number
  const NodeProgram* program_ = nullptr;         ///< program of the order that is being obeyed
  bool welcomed_ = false;                        ///< whether the open stream was welcomed
  Duration backoff_;                             ///< before the next stream
  std::optional<TimerId> timer_;
  bool removing_ = false;
  bool done_ = false;
  Status outcome_;
};

}  // namespace orrery

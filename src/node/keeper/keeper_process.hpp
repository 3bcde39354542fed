// node/keeper/keeper_process.hpp - the keeper on a real machine: Keeper (agent/keeper.hpp) decides,
// this class starts and ends processes, keeps time and communicates with the agent.
//
// Built by main() of orrery-keeper, or by any caller with a thread and a directory for it; lives as
// long as the process. It needs no agent: orders come when one is connected, and the lease runs
// anyway. Reports go to the agent that sent the last order. The clock is CLOCK_BOOTTIME.
// Precondition: SIGCHLD and SIGTERM are blocked, a single thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/keeper.hpp"
#include "base/system/descriptor_watch.hpp"
#include "base/system/real_env.hpp"
#include "node/exec/exec_table.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/keeper/keeper_wire.hpp"
#include "node/keeper/rank_table.hpp"
#include "node/progress_stream.hpp"
#include "node/step_watch.hpp"

namespace orrery {

/// Makes the control group of the directory's keeper. Destroying it again removes what a killed
/// keeper has left. Error: there are no groups, or none may be made.
[[nodiscard]] Result<std::unique_ptr<ControlGroup>> make_keeper_group(Storage& storage,
                                                                      const KeeperFiles& files);

class KeeperProcess final : public ListenerEvents {
 public:
  /// Reads the launch file, makes the files of the directory, listens. The ranks start with run().
  /// Errors: the launch file, or what the system refused.
  [[nodiscard]] static Result<std::unique_ptr<KeeperProcess>> open(RealEnv& real,
                                                                   const KeeperFiles& files);
  KeeperProcess(RealEnv& real, KeeperFiles files, KeeperLaunch launch);

  /// Runs until the agent has released it or, after SIGTERM, no process is left.
  void run();

  void on_accept(const Accepted& accepted) override;
  void on_frame(ConnectionId connection, std::string_view frame) override;
  void on_close(ConnectionId connection, const Closed& closed) override;

 private:
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status watch_signals();
  [[nodiscard]] Status watch_time();
  [[nodiscard]] Status prepare_user();
  void join_group();

  void on_signal(std::string_view signals);
  void on_line(const ProgressLine& line);
  void follow(ConnectionId connection, AgentOrder order);
  void answer(ConnectionId connection, const LogQuestion& question);
  void answer(ConnectionId connection, const ExecOpen& open);
  void answer(ConnectionId connection, const ExecInput& input);
  /// Sends a command's output to the agent; without an agent it is dropped.
  void tell(const KeeperOutput& output);
  void lose_agent();

  /// Does all that the keeper wants, then waits for its next instant.
  void act();
  void apply(const StartProcesses& start);
  void apply(const SignalProcesses& signal);
  void apply(const CapClock& cap);
  void apply(const AttemptReport& report);
  void apply(const ExitKeeper& exit);
  void start_share(const StartProcesses& start, const RankShare& share);
  void limit_ranks();
  void fence_ranks();
  void hold_share(const RankShare& share, std::uint32_t epoch);
  [[nodiscard]] Status write_script();
  void write_mpi_files(const GangLayout& layout);
  void write_membership(std::uint32_t epoch);
  /// Writes a file that only the job's user can read.
  [[nodiscard]] Status write_for_user(const std::string& path, std::string_view text);
  /// Writes a file for the job's user; a failure is noted, and ranks run on.
  void write_or_note(const std::string& path, std::string_view text);
  void give_to_user(const std::string& path);
  void arm_timer();
  /// Checks again when ranks may hang, and ends those that do.
  void await_hang();
  void look_for_hang(Instant expected);
  void report_soon();
  void send_paces();
  void send_wrong();
  void send_status();
  void note(std::string text);
  [[nodiscard]] Instant now() const { return clock_.now_boot(); }

  RealEnv& real_;
  RealClock clock_;
  KeeperFiles files_;
  KeeperLaunch launch_;
  Keeper keeper_;
  std::unique_ptr<RankTable> ranks_;
  ExecTable commands_;
  std::vector<RankShare> shares_;  ///< of the newest start, at the clocks of the newest order
  std::unique_ptr<ProgressStream> stream_;
  std::unique_ptr<DescriptorWatch> signals_;
  std::unique_ptr<DescriptorWatch> timer_;
  ConnectionId agent_ = ConnectionId::kNone;
  RankProgress progress_;
  StepWatch steps_;
  std::optional<TimerId> hang_timer_;
  std::vector<RankPace> said_paces_;  ///< sent to the connected agent
  std::string wrong_;  ///< evidence that the ranks here computed wrong results; empty: none
  std::vector<RankSlot> wrong_slots_;  ///< of the rank that reported it
  Instant saved_at_;                   ///< newest checkpoint, or the start
  std::vector<std::string> notes_;
  bool quiet_ = false;   ///< progress was reported less than a second ago
  bool unsaid_ = false;  ///< whether a report is pending
  bool ending_ = false;  ///< SIGTERM came: done when no process is left
  bool done_ = false;
};

}  // namespace orrery

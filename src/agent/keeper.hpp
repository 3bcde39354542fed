// agent/keeper.hpp - the keeper: holds the ranks of one attempt on one node and outlives agents.
//
// Built by its process from the LaunchRanks it was started with, so no keeper exists without an
// order. A state machine: inputs are calls, effects wait in take(). Time is the node's clock that
// never goes back and counts sleep (CLOCK_BOOTTIME), which its agent uses too. The caller
// guarantees that a dead keeper takes its processes with it, and calls on_timer no earlier than
// next_due().
// Invariant: it never goes back to an earlier epoch; once it has begun to end it starts no process;
// the stage kGone means that no process is left. Cost: O(processes) a call.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/message.hpp"

namespace orrery {

/// One process: the gang of the job it belongs to, and its device on the node.
struct RankSlot {
  std::uint32_t gang = 0;
  std::uint32_t device = 0;

  friend auto operator<=>(const RankSlot&, const RankSlot&) = default;
};

// --- Effects ------------------------------------------------------------------------------------

/// The processes of `shares` take part in a newer epoch. Those of `fresh` are started; another one
/// that has exited is not restarted: the keeper will receive its exit.
struct StartProcesses {
  FenceToken token;
  std::vector<RankShare> shares;
  std::vector<RankSlot> fresh;  ///< ascending
};

enum class ProcessSignal : std::uint8_t { kTerm, kKill };

struct SignalProcesses {
  ProcessSignal signal = ProcessSignal::kTerm;
  std::vector<RankSlot> slots;
};

/// Runs the devices of a share at another clock. If they cannot have that clock, or their first
/// one, the receiver calls on_clock.
struct CapClock {
  RankShare share;
};

struct ExitKeeper {};

/// AttemptReport: for the agent.
using KeeperEffect =
    std::variant<StartProcesses, SignalProcesses, CapClock, AttemptReport, ExitKeeper>;

// --- Inputs -------------------------------------------------------------------------------------

/// A process takes part in the rendezvous of an epoch.
struct ProcessUp {
  RankSlot slot;
  std::uint32_t epoch = 0;
};

struct ProcessExit {
  RankSlot slot;
  int status = 0;                              ///< exit status; 128 + the signal that ended it
  Blame cause{.layer = FaultLayer::kProgram};  ///< cause of an exit that is not the end of the work
};

class Keeper {
 public:
  /// `stamp` is that of the order. Precondition: `launch` names at least one device.
  Keeper(OrderStamp stamp, const LaunchRanks& launch, Instant now);

  void on_order(const KeeperOrder& order, Instant now);
  void on_process_up(const ProcessUp& up, Instant now);
  void on_process_exit(const ProcessExit& exit, Instant now);
  /// The processes hang, as `evidence` says: they are ended, as after a fault of the program.
  void on_hang(std::string evidence, Instant now);
  /// A signal ends the keeper: it kills its processes. Unless they were to end, this is a fault of
  /// the machine.
  void on_signal(Instant now);
  /// The devices of a gang run at this clock here, not at that of the newest order.
  void on_clock(std::uint32_t gang, double clock);
  /// A line of the ranks' progress stream; a line of an older epoch has no effect.
  void on_progress(const FenceToken& token, const Progress& progress);
  /// A replica of a service reports itself; a report that is as the last one has no effect.
  void on_replica(const FenceToken& token, const ReplicaReport& replica);
  void on_timer(Instant now);

  /// When on_timer must be called; Instant::max(): no timer is pending.
  [[nodiscard]] Instant next_due() const;
  [[nodiscard]] RankStage stage() const { return report_.stage; }
  [[nodiscard]] const AttemptReport& report() const { return report_; }
  /// Returns the effects in order; each effect is returned once.
  [[nodiscard]] std::vector<KeeperEffect> take();

 private:
  struct Process {
    RankSlot slot;
    std::optional<std::uint32_t> up_epoch;
    bool leaving = false;
  };
  void follow(const LaunchRanks& launch, Instant now);
  void change_clocks(const std::vector<RankShare>& shares);
  void expect_clocks();
  void start_processes();
  void end(Duration grace, Instant now);
  void kill();
  void keep_time(Instant now);
  void give_up(Instant now);
  void leave(const std::vector<RankSlot>& slots, Instant kill_at);
  void note_up();
  void note_gone();
  void tell();
  [[nodiscard]] bool all_shed() const;
  [[nodiscard]] std::vector<RankSlot> living() const;

  AttemptReport report_;
  Fence fence_;
  LaunchRanks launch_;               ///< newest order
  std::uint32_t started_epoch_ = 0;  ///< newest epoch for which processes were started
  Instant start_at_;                 ///< start time while preparing
  Instant heard_;                    ///< the lease counts from here
  Instant kill_at_ = Instant::max();
  std::vector<Process> processes_;  ///< living processes, by slot
  std::vector<KeeperEffect> effects_;
};

}  // namespace orrery

// node/keeper/rank_table.hpp - the processes of an attempt on one node, their logs, and how they
// end.
//
// Owned by the keeper, used on its loop. It adopts orphans: processes that ranks leave behind are
// found and ended with the last rank.
// Invariant: when the last exit is handed out, no descendant of this process is left.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/keeper.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/machine/control_group.hpp"

namespace orrery {

class RankTable {
 public:
  /// All arguments are borrowed but `group`, which may be null.
  RankTable(RealLoop& loop, Storage& storage, const KeeperFiles& files,
            std::unique_ptr<ControlGroup> group);
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;
  ~RankTable();

  /// Sets what the processes may use together. Errors: what could not be set, and why.
  [[nodiscard]] Status limit(const GroupLimits& limits);
  /// Limits how many processes there may be (0: any number), and keeps them from the given device
  /// files. Errors: what could not be done, and why.
  [[nodiscard]] Status fence(std::uint64_t processes_max, std::vector<DeviceNumber> denied);
  /// Whether one of the start's slots has a process.
  [[nodiscard]] bool runs(const RankStart& start) const;
  /// Starts a process. Precondition: none of its slots has one. Errors: the log or the program.
  [[nodiscard]] Status start(const RankStart& start, const KeeperLaunch& launch);
  /// Signals the processes of these slots and all processes in their process groups.
  void signal(ProcessSignal signal, const std::vector<RankSlot>& slots);
  /// Saves the stacks of the processes' threads. Error: a file that could not be written.
  [[nodiscard]] Status save_stacks() const;
  /// Must be called whenever a child has ended. Returns exits in the order they were seen; the last
  /// one only when no process is left.
  [[nodiscard]] std::vector<ProcessExit> reap();

  /// Returns the log of a process, also of one that has ended; null: there never was one.
  [[nodiscard]] const RankLog* log(std::uint32_t gang, std::uint32_t rank) const;
  /// Returns the slots of a rank's running process; empty: there is none.
  [[nodiscard]] std::vector<RankSlot> slots_of(std::uint32_t rank) const;

  /// Returns how a rank's process was started; null: it does not run. Valid until the next reap().
  [[nodiscard]] const RankStart* running(std::uint32_t gang, std::uint32_t rank) const;
  /// Names the running ranks: "rank 0 of gang 0, rank 1 of gang 0".
  [[nodiscard]] std::string running_text() const;
  /// Returns cgroup.procs of each group that a process beside the ranks joins.
  [[nodiscard]] std::vector<int> groups() const;
  /// Called by reap() for each child that is no rank and has ended, while it is not yet reaped.
  using OtherEnded = std::function<void(pid_t, int status)>;
  void on_other_end(OtherEnded ended) { other_ended_ = std::move(ended); }

 private:
  struct Running {
    RankStart start;
    RankLog* log = nullptr;
  };
  void note_end(pid_t pid, int status);
  /// Starts the process that writes the file of a stream. Errors: that file.
  [[nodiscard]] Status copy(const RankStart& start, const KeeperLaunch& launch,
                            std::pair<RankLog*, RankLog::Stream> from);
  /// Whether copies of what the ranks wrote are still being written.
  [[nodiscard]] bool waits_for_copies();

  RealLoop& loop_;
  Storage& storage_;
  const KeeperFiles& files_;
  std::unique_ptr<ControlGroup> group_;
  GroupLimits limits_;   ///< as requested
  bool limited_ = true;  ///< whether they are set
  std::map<pid_t, Running> running_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<RankLog>> logs_;
  std::vector<ProcessExit> ended_;  ///< not yet handed out
  std::set<pid_t> copiers_;         ///< that have not ended
  std::optional<TimerId> copies_due_;
  OtherEnded other_ended_ = [](pid_t, int) {};
};

}  // namespace orrery

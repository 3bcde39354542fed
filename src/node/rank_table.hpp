// node/rank_table.hpp - the processes of an attempt on one node, their logs, and how they end.
//
// Owned by the keeper, used on its loop. It adopts orphans: whatever a process of it leaves behind
// is found and ended with the last of them.
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
#include "node/control_group.hpp"
#include "node/keeper_launch.hpp"

namespace orrery {

class RankTable {
 public:
  /// All borrowed but `group`, which may be none.
  RankTable(RealLoop& loop, Storage& storage, const KeeperFiles& files,
            std::unique_ptr<ControlGroup> group);
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;
  ~RankTable();

  /// Sets what they may use together. Errors: what could not be set, and why.
  [[nodiscard]] Status limit(const GroupLimits& limits);
  /// Limits how many processes they may have together (0: any number), and keeps them from device
  /// files of others. Errors: what could not be done, and why.
  [[nodiscard]] Status fence(std::uint64_t processes_max, std::vector<DeviceNumber> denied);
  /// Whether one of its slots has a process.
  [[nodiscard]] bool runs(const RankStart& start) const;
  /// Precondition: none of its slots has a process. Errors: the log or the program.
  [[nodiscard]] Status start(const RankStart& start, const KeeperLaunch& launch);
  /// To the processes of these slots and all they have started in their process groups.
  void signal(ProcessSignal signal, const std::vector<RankSlot>& slots);
  /// Writes down where their threads are. Error: a file that could not be written.
  [[nodiscard]] Status save_stacks() const;
  /// To be called whenever a child has ended. Exits in the order they were seen; the last one comes
  /// only when nobody is left.
  [[nodiscard]] std::vector<ProcessExit> reap();

  /// The log of a process, of one that has ended, too; null: there never was one.
  [[nodiscard]] const RankLog* log(std::uint32_t gang, std::uint32_t rank) const;
  /// Slots of the process of a rank that runs; none: empty.
  [[nodiscard]] std::vector<RankSlot> slots_of(std::uint32_t rank) const;

  /// How the process of a rank was started; null: it does not run. Valid until the next reap().
  [[nodiscard]] const RankStart* running(std::uint32_t gang, std::uint32_t rank) const;
  /// "rank 0 of gang 0, rank 1 of gang 0", of those that run.
  [[nodiscard]] std::string running_text() const;
  /// cgroup.procs of each group that a process beside the ranks joins.
  [[nodiscard]] std::vector<int> groups() const;
  /// Called by reap() with the end of each child that is no rank, while it is not yet reaped.
  using OtherEnded = std::function<void(pid_t, int status)>;
  void on_other_end(OtherEnded ended) { other_ended_ = std::move(ended); }

 private:
  struct Running {
    RankStart start;
    RankLog* log = nullptr;
  };
  void note_end(pid_t pid, int status);
  /// Starts the process that writes the file of a stream. Errors: its file.
  [[nodiscard]] Status copy(const RankStart& start, const KeeperLaunch& launch,
                            std::pair<RankLog*, RankLog::Stream> from);
  /// Whether copies of what the ranks wrote are still being written.
  [[nodiscard]] bool waits_for_copies();

  RealLoop& loop_;
  Storage& storage_;
  const KeeperFiles& files_;
  std::unique_ptr<ControlGroup> group_;
  GroupLimits limits_;   ///< as they were asked for
  bool limited_ = true;  ///< and set
  std::map<pid_t, Running> running_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<RankLog>> logs_;
  std::vector<ProcessExit> ended_;  ///< not yet handed out
  std::set<pid_t> copiers_;         ///< that have not ended
  std::optional<TimerId> copies_due_;
  OtherEnded other_ended_ = [](pid_t, int) {};
};

}  // namespace orrery

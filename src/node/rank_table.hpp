// node/rank_table.hpp - the processes of an attempt on one node, their logs, and how they end.
//
// Owned by the keeper, used on its loop. It adopts orphans: whatever a process of it leaves behind
// is found and ended with the last of them.
// Invariant: when the last exit is handed out, no descendant of this process is left.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
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

 private:
  struct Running {
    RankStart start;
    RankLog* log = nullptr;
  };
  void note_end(pid_t pid, int status);

  RealLoop& loop_;
  Storage& storage_;
  const KeeperFiles& files_;
  std::unique_ptr<ControlGroup> group_;
  GroupLimits limits_;   ///< as they were asked for
  bool limited_ = true;  ///< and set
  std::map<pid_t, Running> running_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<RankLog>> logs_;
  std::vector<ProcessExit> ended_;  ///< not yet handed out
};

}  // namespace orrery

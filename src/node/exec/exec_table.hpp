// node/exec/exec_table.hpp - the commands that run beside the ranks of an attempt on one node, by
// their numbers.
//
// Owned by the keeper, used on its loop. They are processes of the attempt like its ranks: they are
// in its control group and end with it. The agent bounds how many there are.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>

#include "node/exec/exec_process.hpp"
#include "node/keeper/rank_table.hpp"

namespace orrery {

class ExecTable {
 public:
  using Tell = std::function<void(const KeeperOutput&)>;

  /// `tell` gets the messages for the agent; it may not call this object.
  ExecTable(RealLoop& loop, Tell tell) : loop_(loop), tell_(std::move(tell)) {}

  /// Starts a command beside a rank, or reports why it cannot.
  void open(const ExecOpen& open, const RankTable& ranks, const KeeperLaunch& launch);
  void take(const ExecInput& input);
  /// Notes that a child that is no rank has ended and is not yet reaped.
  void note_end(pid_t pid, int status);
  /// Ends all commands, because the connection to the agent is gone.
  void hang_up_all();

 private:
  void refuse(const ExecOpen& open, std::string why);

  RealLoop& loop_;
  Tell tell_;
  std::map<std::uint64_t, std::unique_ptr<ExecProcess>> commands_;
};

}  // namespace orrery

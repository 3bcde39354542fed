#include "node/exec/exec_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {

void ExecTable::refuse(const ExecOpen& open, std::string why) {
  tell_(ExecEnd{.id = open.id, .status = 0, .error = std::move(why)});
}

void ExecTable::open(const ExecOpen& open, const RankTable& ranks, const KeeperLaunch& launch) {
  if (commands_.contains(open.id)) return;
  const RankStart* rank = ranks.running(open.gang, open.rank);
  if (rank == nullptr) {
    const std::string running = ranks.running_text();
    return refuse(open, fmt::format("rank {} of gang {} has no process here{}", open.rank,
                                    open.gang, running.empty() ? "" : "; there are " + running));
  }
  const auto output = [this](const ExecOutput& said) { tell_(said); };
  const auto ended = [this](const ExecEnd& end) {
    tell_(end);
    // Deferred, because the call comes from the command's own methods.
    loop_.post([this, id = end.id] { commands_.erase(id); });
  };
  Result<std::unique_ptr<ExecProcess>> process =
      ExecProcess::start(open, {loop_, *rank, launch, ranks.groups(), output, ended});
  if (!process) return refuse(open, process.error().message);
  commands_[open.id] = *std::move(process);
}

void ExecTable::take(const ExecInput& input) {
  const auto found = commands_.find(input.id);
  if (found != commands_.end()) found->second->take(input);
}

void ExecTable::note_end(pid_t pid, int status) {
  const auto found =
      std::ranges::find_if(commands_, [&](const auto& each) { return each.second->pid() == pid; });
  if (found != commands_.end()) found->second->note_end(status);
}

void ExecTable::hang_up_all() {
  for (const auto& [id, process] : commands_) process->hang_up();
}

}  // namespace orrery

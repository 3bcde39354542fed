#include "node/exec/command_relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {

std::string CommandRelay::refusal(const AttemptId& id, const KeeperHandle* keeper) const {
  if (keeper == nullptr) {
    return fmt::format("attempt {} of job {} does not run on {}", id.attempt, id.job.value(),
                       node_);
  }
  // An attempt that takes all it gets has one half, the next one half of the rest.
  const std::size_t free = kCommandsMax - commands_.size();
  const auto of_attempt = static_cast<std::size_t>(std::ranges::count_if(
      commands_, [&](const auto& each) { return each.second.attempt == id; }));
  if (of_attempt >= free) {
    return fmt::format(
        "{} commands run beside ranks of job {} on {}, and {} of {} are left for others: "
        "a job has no more than are left; try again when one has ended",
        of_attempt, id.job.value(), node_, free, kCommandsMax);
  }
  if (!keeper->runs_commands()) {
    return fmt::format(
        "the keeper of job {} on {} does not run commands: it is of an older "
        "release, or its agent has just begun; jobs that start now can",
        id.job.value(), node_);
  }
  return "";
}

void CommandRelay::open(const AttemptExecOpen& asked, KeeperHandle* keeper) {
  if (std::string why = refusal(asked.attempt, keeper); !why.empty()) {
    return session_.send(ExecEnd{asked.open.id, 0, std::move(why)});
  }
  commands_[asked.open.id] = {asked.attempt, keeper};
  keeper->tell(asked.open);
}

void CommandRelay::input(const ExecInput& input) {
  const auto command = commands_.find(input.id);
  if (command == commands_.end()) return;
  command->second.keeper->tell(input);
  if (input.close) commands_.erase(command);
}

void CommandRelay::output(const ExecOutput& output) {
  if (commands_.contains(output.id)) session_.send(output);
}

void CommandRelay::end(const ExecEnd& end) {
  if (commands_.erase(end.id) > 0) session_.send(end);
}

void CommandRelay::end(const AttemptId& id, const std::string& why) {
  for (auto at = commands_.begin(); at != commands_.end();) {
    if (at->second.attempt != id) {
      ++at;
      continue;
    }
    session_.send(ExecEnd{at->first, 0, why});
    at = commands_.erase(at);
  }
}

void CommandRelay::close() {
  for (const auto& [id, command] : std::exchange(commands_, {})) {
    command.keeper->tell(ExecInput{.id = id, .close = true});
  }
}

}  // namespace orrery

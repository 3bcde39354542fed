// Commands beside ranks: the agent passes messages between controller and keepers on.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/agent/agent_process.hpp"

namespace orrery {
namespace {

/// The windows of so many commands fit into what may wait on a connection to a keeper or
/// controller.
constexpr std::size_t kCommandsMax = 32;

}  // namespace

void AgentProcess::on_command(const AttemptExecOpen& asked) {
  const auto refuse = [&](std::string why) {
    if (welcomed_) channel_.send(ExecEnd{asked.open.id, 0, std::move(why)});
  };
  const auto found = attempts_.find(asked.attempt);
  const std::string& node = setup_.opening.node;
  if (found == attempts_.end() || found->second.link == nullptr || found->second.over) {
    return refuse(fmt::format("attempt {} of job {} does not run on {}", asked.attempt.attempt,
                              asked.attempt.job.value(), node));
  }
  // An attempt that takes all it gets has one half, the next one half of the rest.
  const std::size_t free = kCommandsMax - commands_.size();
  const auto of_attempt = static_cast<std::size_t>(std::ranges::count_if(
      commands_, [&](const auto& each) { return each.second == asked.attempt; }));
  if (of_attempt >= free) {
    return refuse(fmt::format(
        "{} commands run beside ranks of job {} on {}, and {} of {} are left for others: "
        "a job has no more than are left; try again when one has ended",
        of_attempt, asked.attempt.job.value(), node, free, kCommandsMax));
  }
  if (!found->second.link->runs_commands()) {
    return refuse(
        fmt::format("the keeper of job {} on {} does not run commands: it is of an older "
                    "release, or its agent has just begun; jobs that start now can",
                    asked.attempt.job.value(), node));
  }
  commands_[asked.open.id] = asked.attempt;
  found->second.link->tell(asked.open);
}

void AgentProcess::on_command_input(const ExecInput& input) {
  const auto command = commands_.find(input.id);
  if (command == commands_.end()) return;
  const auto attempt = attempts_.find(command->second);
  if (attempt != attempts_.end()) attempt->second.link->tell(input);
  if (input.close) commands_.erase(command);
}

void AgentProcess::on_command_output(const ExecOutput& output) {
  if (welcomed_ && commands_.contains(output.id)) channel_.send(output);
}

void AgentProcess::on_command_end(const ExecEnd& end) {
  if (commands_.erase(end.id) > 0 && welcomed_) channel_.send(end);
}

void AgentProcess::close_commands() {
  for (const auto& [id, attempt] : std::exchange(commands_, {})) {
    const auto found = attempts_.find(attempt);
    if (found != attempts_.end()) found->second.link->tell(ExecInput{.id = id, .close = true});
  }
}

void AgentProcess::end_commands(const AttemptId& id, const std::string& why) {
  for (auto at = commands_.begin(); at != commands_.end();) {
    if (at->second != id) {
      ++at;
      continue;
    }
    if (welcomed_) channel_.send(ExecEnd{at->first, 0, why});
    at = commands_.erase(at);
  }
}

}  // namespace orrery

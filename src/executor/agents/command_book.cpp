#include "executor/agents/command_book.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace orrery {

Result<std::uint64_t> CommandBook::open(NodeId node, AttemptExecOpen command, Hears hears) {
  const AgentRecord& agent = agents_.of(node);
  if (agent.session == nullptr || !agent.opening) {
    return infeasible("the agent of the rank's node is not connected");
  }
  if (!agent.opening->runs_commands) {
    return infeasible(
        fmt::format("the agent of {} is of release {}, which runs no commands beside "
                    "ranks: expected a newer one",
                    agent.opening->node, agent.opening->version));
  }
  std::uint64_t id = entropy_.draw();
  while (commands_.contains(id)) id = entropy_.draw();
  command.open.id = id;
  commands_.emplace(id, Command{node, std::move(hears)});
  agent.session->send(std::move(command));
  return id;
}

void CommandBook::send(NodeId node, const ControllerMessage& message) const {
  if (AgentSession* session = agents_.of(node).session; session != nullptr) session->send(message);
}

void CommandBook::tell(const ExecInput& input) {
  const auto found = commands_.find(input.id);
  if (found != commands_.end()) send(found->second.node, input);
}

void CommandBook::close(std::uint64_t id) {
  const auto found = commands_.find(id);
  if (found == commands_.end()) return;
  send(found->second.node, ExecInput{.id = id, .close = true});
  commands_.erase(found);
}

void CommandBook::hear(NodeId node, const ExecOutput& output) {
  const auto found = commands_.find(output.id);
  if (found == commands_.end() || found->second.node != node) return;
  const Hears hears = found->second.hears;
  hears.output(output);
}

void CommandBook::hear(NodeId node, const ExecEnd& end) {
  const auto found = commands_.find(end.id);
  if (found == commands_.end() || found->second.node != node) return;
  const Hears hears = std::move(found->second.hears);
  commands_.erase(found);
  hears.end(end);
}

void CommandBook::lose(NodeId node, const std::string& name) {
  std::vector<ExecEnd> ends;
  for (const auto& [id, command] : commands_) {
    if (command.node != node) continue;
    ends.push_back({id, 0, fmt::format("the agent of {} was lost, and the command with it", name)});
  }
  for (const ExecEnd& end : ends) hear(node, end);
}

void CommandBook::use(const FleetMap& map) {
  for (auto& [id, command] : commands_) command.node = map.nodes[command.node.value()];
}

}  // namespace orrery

#include "twin/holds/hold_agents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::uint64_t kAgentStartMs = 10'000;

}  // namespace

HoldAgents::HoldAgents(ProtocolContext& context, ProtocolNodes& nodes, std::uint32_t first,
                       Outside outside)
    : context_(context),
      nodes_(nodes),
      first_(first),
      outside_(std::move(outside)),
      lent_(nodes.size() - first) {}

// --- What the manager does with a node ----------------------------------------------------------

void HoldAgents::begin(NodeId node, const ManagerStep& step, AgentComes comes) {
  at(node) = {.step = step};
  context_.note(
      fmt::format("node {} is in {} as {}", node.value(), text_of(step.hold->key), step.hold->id));
  if (comes == AgentComes::kNever) return;
  const Duration delay =
      Duration::milliseconds(static_cast<std::int64_t>(context_.rng().below(kAgentStartMs)));
  context_.time().after(delay, [this, node, run = step.run] {
    if (at(node).step.run != run) return;
    nodes_.host(node, AgentMay::kStart);
    nodes_.start_agent(node);
  });
}

void HoldAgents::warn(NodeId node) {
  const LentAgent agent = nodes_.agent(node);
  if (agent.identity == nullptr || agent.frozen) return;
  context_.transmit([this, node, from = *agent.identity] {
    if (hears(from) && outside_.reachable(node)) outside_.ending(node);
  });
}

void HoldAgents::end_agent(NodeId node) {
  nodes_.host(node, AgentMay::kNotStart);
  nodes_.kill_agent(node);
}

void HoldAgents::dismiss(NodeId node) {
  const AgentIdentity* agent = nodes_.agent(node).identity;
  if (agent == nullptr || !hears(*agent)) return;
  context_.note(fmt::format("the agent of node {} is dismissed", node.value()));
  end_agent(node);
  outside_.exited(node);
}

void HoldAgents::end(NodeId node) {
  context_.note(fmt::format("the step on node {} is over", node.value()));
  end_agent(node);
  for (const AttemptId& attempt : nodes_.keepers_on(node)) {
    if (is_of_step({node, attempt})) nodes_.kill_keeper(node, attempt);
  }
  at(node) = {};
}

void HoldAgents::freeze(NodeId node, Frozen frozen) {
  if (frozen == Frozen::kYes) {
    nodes_.freeze_agent(node);
  } else {
    nodes_.thaw_agent(node);
  }
}

// --- Agents and the controller ------------------------------------------------------------------

void HoldAgents::look() {
  for (std::size_t n = 0; n < lent_.size(); ++n) {
    const NodeId node = id_of(n);
    const LentAgent agent = nodes_.agent(node);
    if (!nodes_.powered(node) || agent.lost_step) {
      lent_[n] = {};
      nodes_.host(node, AgentMay::kNotStart);
      outside_.lost(node);
      continue;
    }
    const bool speaks = agent.identity != nullptr && !agent.frozen && outside_.reachable(node);
    if (!speaks || outside_.term() == 0 || lent_[n].asking) continue;
    if (!hears(*agent.identity)) ask(node, *agent.identity);
  }
}

void HoldAgents::ask(NodeId node, const AgentIdentity& agent) {
  if (context_.chance(context_.rules().network.loss)) return;
  at(node).asking = true;
  const Duration delay = Duration::nanoseconds(static_cast<std::int64_t>(context_.rng().below(
      static_cast<std::uint64_t>(context_.rules().network.delay_max.count_ns()))));
  context_.time().after(delay, [this, node, agent] {
    at(node).asking = false;
    const AgentIdentity* now = nodes_.agent(node).identity;
    const bool same = now != nullptr && *now == agent && at(node).step.run != 0;
    if (same && outside_.term() != 0 && outside_.reachable(node)) answer(node, agent);
  });
}

void HoldAgents::answer(NodeId node, const AgentIdentity& agent) {
  Node& here = at(node);
  const std::uint64_t term = outside_.term();
  const Status admitted = outside_.admit(node, *here.step.hold);
  if (admitted) {
    context_.note(fmt::format("the agent of node {} is let in", node.value()));
    here.accepted = true;
    here.let_in = agent;
    here.term = term;
    return;
  }
  context_.note(
      fmt::format("the agent of node {} is refused: {}", node.value(), admitted.error().message));
  if (admitted.error().kind == ErrorKind::kEnvironment) return;
  end_agent(node);
  outside_.exited(node);
}

bool HoldAgents::hears(const AgentIdentity& agent) const {
  const Node& here = at(agent.node);
  return here.let_in == agent && here.term == outside_.term();
}

bool HoldAgents::reaches(NodeId node) const {
  const AgentIdentity* agent = nodes_.agent(node).identity;
  return agent != nullptr && hears(*agent);
}

bool HoldAgents::note_keepers() {
  bool all = true;
  std::map<KeeperAt, std::uint64_t> runs;
  for (std::size_t n = 0; n < lent_.size(); ++n) {
    for (const AttemptId& attempt : nodes_.keepers_on(id_of(n))) {
      const KeeperAt keeper{id_of(n), attempt};
      const auto before = runs_.find(keeper);
      if (before == runs_.end() && !lent_[n].accepted) all = false;
      runs.emplace(keeper, before == runs_.end() ? lent_[n].step.run : before->second);
    }
  }
  runs_ = std::move(runs);
  return all;
}

bool HoldAgents::is_of_step(const KeeperAt& keeper) const {
  const auto run = runs_.find(keeper);
  return run != runs_.end() && run->second == at(keeper.node).step.run;
}

}  // namespace orrery

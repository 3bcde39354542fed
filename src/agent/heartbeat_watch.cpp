#include "agent/heartbeat_watch.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

HeartbeatWatch::HeartbeatWatch(std::size_t nodes, const HeartbeatRule& rule, Instant now)
    : rule_(rule), nodes_(nodes, Node{now + rule.grace, {}}) {
  std::vector<Check> checks;
  checks.reserve(nodes);
  for (std::size_t at = 0; at < nodes; ++at) {
    nodes_[at].check = due(nodes_[at]);
    checks.emplace_back(nodes_[at].check, NodeId::at(at));
  }
  checks_ = decltype(checks_)(std::greater<>{}, std::move(checks));
}

/// Returns when the node's health gets worse without a heartbeat.
Instant HeartbeatWatch::due(const Node& node) const {
  const std::uint32_t missed = node.health == NodeHealth::kReady ? rule_.suspect : rule_.lost;
  return node.heard + rule_.until_missed(missed) + asleep_;
}

void HeartbeatWatch::check_when_due(NodeId id) {
  Node& node = nodes_[id.value()];
  node.check = due(node);
  checks_.emplace(node.check, id);
}

NodeHealth HeartbeatWatch::heard(NodeId id, Instant now) {
  Node& node = nodes_[id.value()];
  const bool in_grace = node.heard > awake(now);
  node.heard = awake(now);
  const NodeHealth before = node.health;
  node.health = NodeHealth::kReady;
  if (in_grace || before == NodeHealth::kLost) check_when_due(id);
  return before;
}

/// Does not count the controller's sleep against the nodes.
void HeartbeatWatch::excuse(Instant now) {
  const Duration late = now - next_due();
  if (late >= rule_.interval) asleep_ += late;
  if (late < rule_.until_missed(rule_.lost)) return;
  for (Node& node : nodes_) node.heard = awake(now) + rule_.grace;
}

void HeartbeatWatch::advance(Instant now, std::vector<Change>& changes) {
  excuse(now);
  while (!checks_.empty() && checks_.top().first <= now) {
    const auto [at, id] = checks_.top();
    checks_.pop();
    Node& node = nodes_[id.value()];
    if (at != node.check) continue;
    node.check = Instant::max();
    if (due(node) > now) {
      check_when_due(id);
      continue;
    }
    const bool suspect = node.health == NodeHealth::kReady;
    node.health = suspect ? NodeHealth::kSuspect : NodeHealth::kLost;
    changes.push_back({id, node.health, suspect ? rule_.suspect : rule_.lost});
    if (suspect) check_when_due(id);
  }
}

}  // namespace orrery

#include "agent/heartbeat_watch.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

HeartbeatWatch::HeartbeatWatch(std::size_t nodes, const HeartbeatRule& rule, Instant now)
    : rule_(rule), silent_from_(now + rule.grace), nodes_(nodes, Node{now}) {
  std::vector<Check> checks;
  checks.reserve(nodes);
  for (std::size_t at = 0; at < nodes; ++at) {
    checks.emplace_back(due(nodes_[at]), NodeId::at(at));
  }
  checks_ = decltype(checks_)(std::greater<>{}, std::move(checks));
}

/// When its next change for the worse is due.
Instant HeartbeatWatch::due(const Node& node) const {
  const std::uint32_t missed = node.health == NodeHealth::kReady ? rule_.suspect : rule_.lost;
  return std::max(node.heard, silent_from_) + rule_.until_missed(missed);
}

NodeHealth HeartbeatWatch::heard(NodeId id, Instant now) {
  Node& node = nodes_[id.value()];
  node.heard = std::max(node.heard, now);
  const NodeHealth before = node.health;
  node.health = NodeHealth::kReady;
  if (before == NodeHealth::kLost) checks_.emplace(due(node), id);
  return before;
}

void HeartbeatWatch::advance(Instant now, std::vector<Change>& changes) {
  if (now >= next_due() + rule_.interval) silent_from_ = std::max(silent_from_, now);
  while (!checks_.empty() && checks_.top().first <= now) {
    const NodeId id = checks_.top().second;
    checks_.pop();
    Node& node = nodes_[id.value()];
    if (due(node) > now) {
      checks_.emplace(due(node), id);
      continue;
    }
    const bool suspect = node.health == NodeHealth::kReady;
    node.health = suspect ? NodeHealth::kSuspect : NodeHealth::kLost;
    changes.push_back({id, node.health, suspect ? rule_.suspect : rule_.lost});
    if (suspect) checks_.emplace(due(node), id);
  }
}

}  // namespace orrery

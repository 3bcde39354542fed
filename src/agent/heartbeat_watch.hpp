// agent/heartbeat_watch.hpp - finds silent nodes: those whose heartbeats are missing.
//
// Owned by the FleetLink. Soft state. A node is suspect, then lost, when the set number of
// heartbeats in a row is missing; one is missing half an interval after it was due. Silence counts
// only while the controller itself could receive. After the controller's start or failover each
// node has a grace period to connect, which ends with its first heartbeat. A late call of advance()
// means that the controller slept: that time is not counted, and if it was long enough to lose a
// node, all nodes get the grace period again, because they may have given up on the controller. A
// broken connection of an agent means nothing: the agent may be replaced at any time.
// Invariant: a node that is not lost has one valid check; a check that a sooner one replaced is
// skipped. Cost: O(1) a heartbeat; O(log nodes) for each node every few seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "fleet/ids.hpp"
#include "fleet/state.hpp"

namespace orrery {

struct HeartbeatRule {
  Duration interval = Duration::seconds(1);
  std::uint32_t suspect = 2;  ///< heartbeats missed in a row
  std::uint32_t lost = 5;
  /// For nodes not heard since the controller's start or failover.
  Duration grace = Duration::seconds(30);

  /// Returns the time from the last sign of life until that many heartbeats are missing.
  [[nodiscard]] Duration until_missed(std::uint32_t beats) const {
    return interval * beats + Duration::nanoseconds(interval.count_ns() / 2);
  }
};

class HeartbeatWatch {
 public:
  struct Change {
    NodeId node;
    NodeHealth health = NodeHealth::kReady;  ///< kReady, kSuspect or kLost
    std::uint32_t missed = 0;
  };

  /// Watches nodes 0 .. nodes - 1, all assumed to be ready.
  HeartbeatWatch(std::size_t nodes, const HeartbeatRule& rule, Instant now);

  /// Notes a sign of life. Returns the node's health before it.
  NodeHealth heard(NodeId node, Instant now);

  /// Appends the nodes that have become suspect or lost by `now`, by due time, then by node.
  void advance(Instant now, std::vector<Change>& changes);

  /// When advance() must be called; if that is an interval or more late, the controller was asleep.
  [[nodiscard]] Instant next_due() const {
    return checks_.empty() ? Instant::max() : checks_.top().first;
  }
  [[nodiscard]] NodeHealth health(NodeId node) const { return nodes_[node.value()].health; }

 private:
  struct Node {
    /// In awake time; before the first sign of life the end of the grace period.
    Instant heard;
    Instant check;  ///< the valid check; Instant::max(): none
    NodeHealth health = NodeHealth::kReady;
  };
  using Check = std::pair<Instant, NodeId>;

  [[nodiscard]] Instant awake(Instant now) const { return now - asleep_; }
  [[nodiscard]] Instant due(const Node& node) const;
  void check_when_due(NodeId id);
  void excuse(Instant now);

  HeartbeatRule rule_;
  Duration asleep_;  ///< total sleep of the controller
  std::vector<Node> nodes_;
  std::priority_queue<Check, std::vector<Check>, std::greater<>> checks_;
};

}  // namespace orrery

// agent/heartbeat_watch.hpp - who is silent: nodes whose heartbeats are missing.
//
// Owned by the FleetLink. Soft state. A node is suspect, then lost, when so many heartbeats in a
// row are missing; one is missing half an interval after it was due. Silence counts only while the
// controller itself could hear. After its start or failover a node has a grace period to find it;
// one that has been heard since needs none. Where it wakes late it was the one that slept: so much
// is not counted, and where that was long enough to lose a node, all have the grace period again,
// because they may have given it up. That an agent's connection breaks says nothing: it may be
// replaced at any time.
// Invariant: a node that is not lost has one check that counts; one that was taken over by a sooner
// one is passed over. Cost: O(1) a heartbeat; O(log nodes) for each node every few seconds.
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
  std::uint32_t suspect = 2;  ///< missed in a row
  std::uint32_t lost = 5;
  /// After a start or failover of the controller, for nodes that have not been heard since.
  Duration grace = Duration::seconds(30);

  /// From the last sign of life until so many are missing.
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

  /// Nodes 0 .. nodes - 1, all held to be there.
  HeartbeatWatch(std::size_t nodes, const HeartbeatRule& rule, Instant now);

  /// A sign of life. Returns what the node was held for before.
  NodeHealth heard(NodeId node, Instant now);

  /// Appends who has become suspect or lost by `now`, in order of when it was due, then of node.
  void advance(Instant now, std::vector<Change>& changes);

  /// When advance() is to be called; later by an interval or more, it was asleep.
  [[nodiscard]] Instant next_due() const {
    return checks_.empty() ? Instant::max() : checks_.top().first;
  }
  [[nodiscard]] NodeHealth health(NodeId node) const { return nodes_[node.value()].health; }

 private:
  struct Node {
    /// Awake time; before the first sign of life the end of the grace period.
    Instant heard;
    Instant check;  ///< that counts; Instant::max(): none
    NodeHealth health = NodeHealth::kReady;
  };
  using Check = std::pair<Instant, NodeId>;

  [[nodiscard]] Instant awake(Instant now) const { return now - asleep_; }
  [[nodiscard]] Instant due(const Node& node) const;
  void check_when_due(NodeId id);
  void excuse(Instant now);

  HeartbeatRule rule_;
  Duration asleep_;  ///< of the controller, in all
  std::vector<Node> nodes_;
  std::priority_queue<Check, std::vector<Check>, std::greater<>> checks_;
};

}  // namespace orrery

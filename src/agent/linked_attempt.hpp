// agent/linked_attempt.hpp - one attempt as the controller's FleetLink sees it: the orders to each
// of its nodes and their last reports.
//
// Made and changed by the FleetLink alone. Soft state: all of it can be rebuilt from control's jobs
// and the agents' answers. Invariant: members ascend by node, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/message.hpp"

namespace orrery {

/// The part of an attempt on one node.
struct NodeRanks {
  NodeId node;
  std::vector<RankShare> shares;
  /// Boot id of the node when control decided: nothing is launched on another boot, because control
  /// takes a new boot id as proof that no process of it is there. 0: any.
  std::uint64_t boot = 0;
};

/// How an attempt is launched; each epoch has its own plan.
struct LaunchPlan {
  std::vector<NodeRanks> nodes;  ///< ascending, each once
  Lease lease;
  Duration grace = Duration::seconds(30);  ///< for ranks that must leave
};

/// The ordered state of a node's part of an attempt; it only ever moves towards kKill.
enum class Wanted : std::uint8_t { kRun, kEnd, kKill };

struct LinkedMember {
  NodeRanks ranks;
  Wanted wanted = Wanted::kRun;
  /// The first order; a report from before it is about something else. None: nothing was sent yet.
  std::optional<OrderStamp> launched;
  OrderStamp ordered;  ///< newest order
  Instant sent;
  Instant leased;            ///< no later message has renewed its lease
  std::uint64_t number = 0;  ///< number of the newest report, within the session with its agent
  std::optional<AttemptReport> seen;
  bool up = false;       ///< in the present epoch
  bool done = false;     ///< its ranks ended well
  bool sheds = false;    ///< control waits for the report that no earlier epoch is left here
  bool counted = false;  ///< counted in LinkedAttempt::gone
  bool told = false;     ///< control knows that it is gone, or need not know

  [[nodiscard]] bool gone() const { return seen && seen->stage == RankStage::kGone; }

  [[nodiscard]] bool runs_at_its_clocks() const {
    for (std::size_t i = 0; i < ranks.shares.size(); ++i) {
      const double clock = i < seen->clocks.size() ? seen->clocks[i] : 1;
      if (clock != ranks.shares[i].clock) return false;
    }
    return true;
  }

  /// Whether the node has reported that it carried out its orders.
  [[nodiscard]] bool settled(std::uint32_t epoch) const {
    if (!seen) return false;
    if (gone()) return true;
    if (seen->applied < ordered) return false;
    switch (wanted) {
      case Wanted::kRun:
        return seen->token.epoch >= epoch && runs_at_its_clocks();
      case Wanted::kEnd:
        return seen->stage >= RankStage::kEnding;
      case Wanted::kKill:
        return seen->stage >= RankStage::kKilled;
    }
    return true;
  }
};

struct LinkedAttempt {
  AttemptId id;
  std::uint32_t epoch = 0;
  Duration delay;
  Duration grace;
  Lease lease;
  std::vector<LinkedMember> members;
  std::uint32_t runners = 0;  ///< members of the present epoch
  std::uint32_t up = 0;       ///< runners that are up
  std::uint32_t done = 0;     ///< runners that are done
  std::uint32_t gone = 0;     ///< members that are gone, of all
  Progress progress;          ///< furthest progress that was reported
  bool told_up = false;       ///< control knows that the present epoch is up
  bool told_ended = false;    ///< control knows how it ended
  bool ending = false;        ///< all its nodes have to end it

  [[nodiscard]] FenceToken token() const { return {id, epoch}; }
  [[nodiscard]] LinkedMember* member(NodeId node) {
    const auto at = std::lower_bound(
        members.begin(), members.end(), node,
        [](const LinkedMember& member, NodeId key) { return member.ranks.node < key; });
    return at != members.end() && at->ranks.node == node ? &*at : nullptr;
  }
};

}  // namespace orrery

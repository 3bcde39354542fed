// agent/linked_attempt.hpp - one attempt as the controller's FleetLink sees it: what each of its
// nodes shall do, and what it last said it does.
//
// Made and changed by the FleetLink alone. Soft state: all of it comes back from control's jobs and
// the agents' answers. Invariant: members ascend by node, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/message.hpp"

namespace orrery {

/// What one node of an attempt holds.
struct NodeRanks {
  NodeId node;
  std::vector<RankShare> shares;
  /// Of the node, as control knew it when it decided: on another boot nothing is launched, for
  /// control takes a new boot id as proof that nothing of it is there. 0: any.
  std::uint64_t boot = 0;
};

/// How an attempt is launched; with every epoch anew.
struct LaunchPlan {
  std::vector<NodeRanks> nodes;  ///< ascending, each once
  Lease lease;
  Duration grace = Duration::seconds(30);  ///< for ranks that must leave
};

/// What a node shall do with its part of an attempt; it only ever gets worse.
enum class Wanted : std::uint8_t { kRun, kEnd, kKill };

struct LinkedMember {
  NodeRanks ranks;
  Wanted wanted = Wanted::kRun;
  /// First order; a report from before it is of something else. None: nothing was sent yet.
  std::optional<OrderStamp> launched;
  OrderStamp ordered;  ///< newest order
  Instant sent;
  Instant leased;            ///< no message after it has renewed its lease
  std::uint64_t number = 0;  ///< of the newest report, within the session with its agent
  std::optional<AttemptReport> seen;
  bool up = false;       ///< in the present epoch
  bool done = false;     ///< its ranks ended well
  bool sheds = false;    ///< control waits to hear that nothing of an earlier epoch is left here
  bool counted = false;  ///< among the gone ones
  bool told = false;     ///< control knows that it is gone, or need not know

  [[nodiscard]] bool gone() const { return seen && seen->stage == RankStage::kGone; }

  [[nodiscard]] bool runs_at_its_clocks() const {
    for (std::size_t i = 0; i < ranks.shares.size(); ++i) {
      const double clock = i < seen->clocks.size() ? seen->clocks[i] : 1;
      if (clock != ranks.shares[i].clock) return false;
    }
    return true;
  }

  /// Whether the node has done what is wanted of it, as far as it has said.
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
  std::uint32_t up = 0;       ///< of them
  std::uint32_t done = 0;     ///< of them
  std::uint32_t gone = 0;     ///< of all members
  Progress progress;          ///< the furthest that was reported
  bool told_up = false;       ///< control knows that the present epoch is up
  bool told_ended = false;    ///< control knows how it ended
  bool ending = false;        ///< none of its nodes is to run it any more

  [[nodiscard]] FenceToken token() const { return {id, epoch}; }
  [[nodiscard]] LinkedMember* member(NodeId node) {
    const auto at = std::lower_bound(
        members.begin(), members.end(), node,
        [](const LinkedMember& member, NodeId key) { return member.ranks.node < key; });
    return at != members.end() && at->ranks.node == node ? &*at : nullptr;
  }
};

}  // namespace orrery

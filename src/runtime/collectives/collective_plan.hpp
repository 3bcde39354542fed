// runtime/collectives/collective_plan.hpp - what each rank of a group shows and looks at, round by
// round, in each collective operation.
//
// Built by a Communicator, immutable; pure functions of the ranks, the machines they are on and the
// buffers. An OperationQueue carries the rounds out, at once or later. Invariant: two ranks that
// plan the same operations in the same order plan the same parts between them, in the same order.
// Cost: O(ranks) a round.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/peer_exchange.hpp"
#include "runtime/collectives/reduction_tree.hpp"

namespace orrery {

/// Elements that an operation reads and writes.
struct Elements {
  std::span<std::byte> bytes;
  SumType type = SumType::kFloat32;

  Elements(std::span<std::byte> raw, SumType of) : bytes(raw), type(of) {}
  explicit Elements(std::span<float> floats) : bytes(std::as_writable_bytes(floats)) {}
};

/// Bytes of a buffer that are one rank's. Best at cache lines, so that no two ranks write the same.
struct RankPart {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// A sum whose sources but `own` are what the others show.
struct RoundSum {
  SumType type = SumType::kFloat32;
  std::vector<NodeSum> sources;
  std::size_t own = 0;
  std::span<std::byte> out;
};

/// Parts that are shown at once, and what becomes of those that others show: each is copied, or all
/// are summed. Ranks are the exchange's.
struct Round {
  std::vector<ShownPart> shown;
  std::vector<std::uint32_t> from;
  std::vector<std::span<std::byte>> into;  ///< where what each of `from` shows goes; or:
  std::optional<RoundSum> sum;
  std::span<const std::byte> own;  ///< copied too, to:
  std::span<std::byte> own_to;
  std::vector<std::byte> kept;  ///< a copy that is shown, while what it was made of is written
};
/// Of one operation, which settles (PeerExchange) at the end of all. Invariants: two ranks show
/// each other a part in two rounds at most; what a round writes is in nobody's view any more,
/// because whoever had it in one has shown something since that this round, or one before, looks
/// at.
using Rounds = std::vector<Round>;

/// Does with the views of `round`, in the order of its `from`, what it says.
void use_views(Round& round, std::span<const std::span<const std::byte>> views);

class CollectivePlan {
 public:
  /// `members`: ranks of the exchange, ascending, with its own among them.
  CollectivePlan(const PeerExchange& exchange, std::vector<std::uint32_t> members);

  [[nodiscard]] std::uint32_t rank() const { return all_.rank; }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(all_.members.size());
  }
  /// Of the exchange.
  [[nodiscard]] std::uint32_t member(std::uint32_t rank) const { return all_.members[rank]; }

  /// The operations that Communicator has under these names.
  [[nodiscard]] Rounds barrier() const;
  [[nodiscard]] Rounds all_reduce(const Elements& in_out) const;
  [[nodiscard]] Rounds all_reduce_shards(const Elements& in_out,
                                         std::span<const LeafRange> owned_by_rank) const;
  [[nodiscard]] Rounds reduce_scatter_shards(const Elements& in_out,
                                             std::span<const LeafRange> owned_by_rank,
                                             std::span<const RankPart> parts) const;
  [[nodiscard]] Rounds all_gather_parts(std::span<std::byte> in_out,
                                        std::span<const RankPart> parts) const;
  [[nodiscard]] Rounds reduce_scatter(const Elements& in, std::span<std::byte> out) const;
  [[nodiscard]] Rounds all_gather(std::span<const std::byte> in, std::span<std::byte> out) const;
  [[nodiscard]] Rounds broadcast(std::span<std::byte> in_out, std::uint32_t root) const;
  [[nodiscard]] Rounds scatter(std::span<const std::byte> in, std::span<std::byte> out,
                               std::uint32_t root) const;
  [[nodiscard]] Rounds gather(std::span<const std::byte> in, std::span<std::byte> out,
                              std::uint32_t root) const;
  [[nodiscard]] Rounds all_to_all(std::span<const std::byte> in, std::span<std::byte> out) const;
  [[nodiscard]] Rounds send(std::span<const std::byte> bytes, std::uint32_t to) const;
  [[nodiscard]] Rounds receive(std::span<std::byte> bytes, std::uint32_t from) const;

 private:
  /// Some ranks of the exchange, ascending, and which of them this one is.
  struct Team {
    std::vector<std::uint32_t> members;
    std::uint32_t rank = 0;
  };
  [[nodiscard]] static Team team_of(std::vector<std::uint32_t> members, std::uint32_t own);
  [[nodiscard]] static std::vector<RankPart> even_parts(std::size_t bytes, std::size_t ranks);
  [[nodiscard]] static Round sum_parts(const Team& team, const Elements& in_out,
                                       std::span<const LeafRange> nodes,
                                       std::span<const RankPart> parts);
  [[nodiscard]] static Round gather_parts(const Team& team, std::span<std::byte> in_out,
                                          std::span<const RankPart> parts);
  [[nodiscard]] static Round sum_whole(const Team& team, const Elements& in_out,
                                       std::span<const LeafRange> nodes);
  void find_teams(const PeerExchange& exchange);
  /// Of each machine in turn, the node of the tree that its ranks have together. Nothing: there are
  /// no teams, or what some machine's ranks have is no node.
  [[nodiscard]] std::vector<LeafRange> machine_nodes(
      std::span<const LeafRange> owned_by_rank) const;

  Team all_;
  // Where the group's ranks are on several machines, as many on each, and those of one follow on
  // those of another: ranks of this one, and ranks that have the same place on theirs.
  Team machine_;
  Team column_;
  std::vector<LeafRange> a_leaf_a_rank_;
};

}  // namespace orrery

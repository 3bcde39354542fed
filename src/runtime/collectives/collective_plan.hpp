// runtime/collectives/collective_plan.hpp - what each rank of a group shows and looks at, round by
// round, in each collective operation.
//
// Built by a Communicator; immutable. All functions are pure functions of the ranks, their machines
// and the buffers. An OperationQueue executes the rounds, at once or later. Invariant: two ranks
// that plan the same operations in the same order plan the same parts between them, in the same
// order. Cost: O(ranks) per round.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/exchange/peer_exchange.hpp"

namespace orrery {

/// Elements that an operation reads and writes.
struct Elements {
  std::span<std::byte> bytes;
  SumType type = SumType::kFloat32;

  Elements(std::span<std::byte> raw, SumType of) : bytes(raw), type(of) {}
  explicit Elements(std::span<float> floats) : bytes(std::as_writable_bytes(floats)) {}
};

/// Bytes of a buffer that belong to one rank. Best aligned to cache lines, so that no two ranks
/// write to the same line.
struct RankPart {
  std::size_t begin = 0;
  std::size_t size = 0;
};

/// A sum whose sources, except source `own`, are what the other ranks show.
struct RoundSum {
  SumType type = SumType::kFloat32;
  std::vector<NodeSum> sources;
  std::size_t own = 0;
  std::span<std::byte> out;
};

/// Parts that are shown at the same time, and what is done with the parts that others show: each is
/// copied, or all are summed. Ranks are those of the exchange.
struct Round {
  std::vector<ShownPart> shown;
  std::vector<std::uint32_t> from;
  std::vector<std::span<std::byte>> into;  ///< destination for each of `from`, if there is no sum
  std::optional<RoundSum> sum;
  std::span<const std::byte> own;  ///< copied to own_to, too
  std::span<std::byte> own_to;
  std::vector<std::byte> kept;  ///< a copy that is shown while its original is overwritten
};
/// The rounds of one operation, which settles (PeerExchange) after the last. Invariants: two ranks
/// show each other a part in at most two rounds; no peer still views the memory that a round
/// writes, because each peer that viewed it has since shown a part that this round, or one before,
/// looks at.
using Rounds = std::vector<Round>;

/// Copies or sums the views of `round`, which are in the order of its `from`.
void use_views(Round& round, std::span<const std::span<const std::byte>> views);

class CollectivePlan {
 public:
  /// `members` are ranks of the exchange, ascending, with the own rank among them.
  CollectivePlan(const PeerExchange& exchange, std::vector<std::uint32_t> members);

  [[nodiscard]] std::uint32_t rank() const { return all_.rank; }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(all_.members.size());
  }
  /// Returns the rank in the exchange of a rank of the group.
  [[nodiscard]] std::uint32_t member(std::uint32_t rank) const { return all_.members[rank]; }

  /// The rounds of the operations of Communicator with these names.
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
  /// Some ranks of the exchange, ascending, and the place of this rank among them.
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
  /// Returns for each machine the node of the tree that its ranks own together. Empty: there are no
  /// teams, or the leaves of some machine's ranks are not a node.
  [[nodiscard]] std::vector<LeafRange> machine_nodes(
      std::span<const LeafRange> owned_by_rank) const;

  Team all_;
  // Set where the group's ranks are on several machines, equally many on each, with consecutive
  // ranks on one machine: the ranks of this machine, and the ranks with the same place on theirs.
  Team machine_;
  Team column_;
  std::vector<LeafRange> a_leaf_a_rank_;
};

}  // namespace orrery

// runtime/collectives/communicator.hpp - the collective operations of a group of ranks.
//
// Built over one PeerExchange, for one generation of a group; used by one thread, and all ranks of
// the group call the same operations in the same order. Several may share an exchange, each among
// some of its ranks, as long as any two ranks come to what they do together in the same order. A
// rank's death, in the group or outside of it, is PeerLost at all others, never a hang. Sums are in
// the order of a fixed tree (reduction_tree.hpp), so they have the same bits in every run, whatever
// the backend. Buffers within the group's workspace are not copied between ranks of one machine.
// Cost: what each says, in bytes through the slowest rank.
#pragma once

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

class Communicator {
 public:
  /// Of all ranks of the exchange, which outlives it.
  explicit Communicator(PeerExchange& exchange);
  /// Of `members` alone: ranks of the exchange, ascending, with this one among them. They count
  /// from 0 here. In a PeerLost ranks are those of the exchange.
  Communicator(PeerExchange& exchange, std::vector<std::uint32_t> members);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }

  /// Every rank has come here.
  [[nodiscard]] Shared<void> barrier();
  /// In place. 2 (n - 1) / n of the bytes, in two steps.
  [[nodiscard]] Shared<void> all_reduce(const Elements& in_out);
  /// In place, where each rank holds the sum of one node of a tree over `leaves` (share_leaves):
  /// all have the sum over all leaves then, the same bits however many ranks there are.
  [[nodiscard]] Shared<void> all_reduce_shards(const Elements& in_out,
                                               std::span<const LeafRange> owned_by_rank);
  /// The first of its two steps: each has that sum in its own of the `parts`, and its own elements
  /// in the others. Precondition: each rank has a part, and they do not overlap.
  [[nodiscard]] Shared<void> reduce_scatter_shards(const Elements& in_out,
                                                   std::span<const LeafRange> owned_by_rank,
                                                   std::span<const RankPart> parts);
  /// The second: each part of `in_out` as its rank has it.
  [[nodiscard]] Shared<void> all_gather_parts(std::span<std::byte> in_out,
                                              std::span<const RankPart> parts);
  /// The sum of part `rank` of `in` (equal parts, by rank), into `out`, which may be that part. All
  /// of `in` is as it was, but for that. Precondition: in is `size` times as long as out.
  [[nodiscard]] Shared<void> reduce_scatter(const Elements& in, std::span<std::byte> out);
  /// `in` of each rank, one after the other, into `out`. `in` may be its own part of out.
  [[nodiscard]] Shared<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out);
  /// Of the root's bytes.
  [[nodiscard]] Shared<void> broadcast(std::span<std::byte> in_out, std::uint32_t root);
  /// Part `rank` of the root's `in` into `out`; other ranks' `in` is not looked at.
  [[nodiscard]] Shared<void> scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                     std::uint32_t root);
  /// The other way: into the root's `out`; others' is not written.
  [[nodiscard]] Shared<void> gather(std::span<const std::byte> in, std::span<std::byte> out,
                                    std::uint32_t root);
  /// Part r of `in` becomes part `rank` of rank r's `out`. They do not overlap.
  [[nodiscard]] Shared<void> all_to_all(std::span<const std::byte> in, std::span<std::byte> out);
  /// Between two ranks alone.
  [[nodiscard]] Shared<void> send(std::span<const std::byte> bytes, std::uint32_t to);
  [[nodiscard]] Shared<void> receive(std::span<std::byte> bytes, std::uint32_t from);
  /// send() in two halves: the bytes must not change between them. Receivers see no difference.
  [[nodiscard]] Shared<PartOnItsWay> begin_send(std::span<const std::byte> bytes, std::uint32_t to);
  [[nodiscard]] Shared<void> end_send(const PartOnItsWay& part) { return exchange_.arrived(part); }

 private:
  using Views = std::vector<std::span<const std::byte>>;
  /// PeerExchange::show() by ranks of this group.
  [[nodiscard]] Shared<Views> show(std::span<const ShownPart> parts,
                                   std::span<const std::uint32_t> from);
  [[nodiscard]] std::vector<RankPart> even_parts(std::size_t bytes) const;

  PeerExchange& exchange_;
  std::vector<std::uint32_t> members_;  ///< as the exchange counts them
  std::uint32_t rank_ = 0;
  std::vector<std::uint32_t> peers_;  ///< all ranks but this one
  std::vector<LeafRange> a_leaf_a_rank_;
};

}  // namespace orrery

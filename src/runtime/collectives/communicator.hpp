// runtime/collectives/communicator.hpp - the collective operations of a group of ranks.
//
// Built over one PeerExchange, for one generation of a group; used by one thread, and all ranks of
// the group call the same operations in the same order. A rank's death is PeerLost at all others,
// never a hang. Sums are in the order of a fixed tree (reduction_tree.hpp), so they have the same
// bits in every run, whatever the backend. Buffers within the group's workspace are not copied
// between ranks of one machine. Cost: what each says, in bytes through the slowest rank.
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

class Communicator {
 public:
  /// `exchange` outlives it.
  explicit Communicator(PeerExchange& exchange);

  [[nodiscard]] std::uint32_t rank() const { return exchange_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return exchange_.size(); }

  /// Every rank has come here.
  [[nodiscard]] Shared<void> barrier();
  /// In place. 2 (n - 1) / n of the bytes, in two steps.
  [[nodiscard]] Shared<void> all_reduce(const Elements& in_out);
  /// In place, where each rank holds the sum of one node of a tree over `leaves` (share_leaves):
  /// all have the sum over all leaves then, the same bits however many ranks there are.
  [[nodiscard]] Shared<void> all_reduce_shards(const Elements& in_out,
                                               std::span<const LeafRange> owned_by_rank);
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

 private:
  struct Chunk {
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  [[nodiscard]] Chunk chunk_of(const Elements& all, std::uint32_t rank) const;
  [[nodiscard]] Shared<void> gather_chunks(const Elements& in_out);

  PeerExchange& exchange_;
  std::vector<std::uint32_t> peers_;  ///< all ranks but this one
  std::vector<LeafRange> a_leaf_a_rank_;
};

}  // namespace orrery

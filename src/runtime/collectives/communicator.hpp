// runtime/collectives/communicator.hpp - the collective operations of a group of ranks.
//
// Built over one PeerExchange, for one generation of a group; used by one thread, and all ranks of
// the group call the same operations in the same order. Several communicators may share an
// exchange, each over some of its ranks, as long as any two ranks call the operations they share in
// the same order. If a rank dies, in the group or outside of it, all others get PeerLost and never
// hang. Sums are in the order of a fixed tree (reduction_tree.hpp), so they have the same bits in
// every run, whatever the backend; this also holds for operations that are begun and waited for
// later. Buffers within the group's workspace are not copied between ranks of one machine. The cost
// given for an operation is bytes through the slowest rank.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "runtime/collectives/collective_plan.hpp"
#include "runtime/collectives/operation_queue.hpp"

namespace orrery {

class Communicator {
 public:
  /// A communicator over all ranks of the exchange, which outlives it.
  explicit Communicator(PeerExchange& exchange);
  /// A communicator over `members`: ranks of the exchange, ascending, with this one among them.
  /// Here they count from 0. The rank in a PeerLost is that of the exchange.
  Communicator(PeerExchange& exchange, std::vector<std::uint32_t> members);

  [[nodiscard]] std::uint32_t rank() const { return plan_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return plan_.size(); }

  /// Every operation below may also be begun now and waited for later, as
  /// `begin(plan().all_reduce(elements))`: the memory it reads must not change, and the memory it
  /// writes must not be read, until the handle is done.
  [[nodiscard]] const CollectivePlan& plan() const { return plan_; }
  [[nodiscard]] Pending begin(Rounds rounds) {
    return exchange_.operations().begin(std::move(rounds));
  }
  /// Advances pending operations without waiting; to be called now and then while computing.
  void progress() { (void)exchange_.operations().progress(); }

  /// Calls PeerExchange::watch().
  [[nodiscard]] std::optional<PeerLost> watch(Duration patience) {
    return exchange_.watch(patience);
  }

  /// Returns when every rank has called it.
  [[nodiscard]] Shared<void> barrier() { return run(plan_.barrier()); }
  /// Sums in place. Cost: 2 (n - 1) / n of the bytes, in two steps; few bytes are exchanged whole,
  /// in one step.
  [[nodiscard]] Shared<void> all_reduce(const Elements& in_out) {
    return run(plan_.all_reduce(in_out));
  }
  /// Sums in place, where each rank holds the sum of one node of the tree over all leaves
  /// (share_leaves): afterwards all ranks have the sum over all leaves, with the same bits for any
  /// number of ranks.
  [[nodiscard]] Shared<void> all_reduce_shards(const Elements& in_out,
                                               std::span<const LeafRange> owned_by_rank) {
    return run(plan_.all_reduce_shards(in_out, owned_by_rank));
  }
  /// The first of the two steps of all_reduce_shards() for many bytes: afterwards each rank has the
  /// sum in its own of the `parts`, and its unsummed elements in the others. Precondition: each
  /// rank has a part, and they do not overlap.
  [[nodiscard]] Shared<void> reduce_scatter_shards(const Elements& in_out,
                                                   std::span<const LeafRange> owned_by_rank,
                                                   std::span<const RankPart> parts) {
    return run(plan_.reduce_scatter_shards(in_out, owned_by_rank, parts));
  }
  /// The second step of all_reduce_shards(): fills each part of `in_out` with what its rank has
  /// there.
  [[nodiscard]] Shared<void> all_gather_parts(std::span<std::byte> in_out,
                                              std::span<const RankPart> parts) {
    return run(plan_.all_gather_parts(in_out, parts));
  }
  /// Writes the sum of part `rank` of `in` (equal parts, by rank) to `out`, which may be that part.
  /// The rest of `in` is unchanged. Precondition: in is `size` times as long as out.
  [[nodiscard]] Shared<void> reduce_scatter(const Elements& in, std::span<std::byte> out) {
    return run(plan_.reduce_scatter(in, out));
  }
  /// Writes `in` of each rank, one after the other, to `out`. `in` may be this rank's own part of
  /// out.
  [[nodiscard]] Shared<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
    return run(plan_.all_gather(in, out));
  }
  /// Copies the root's bytes to all ranks.
  [[nodiscard]] Shared<void> broadcast(std::span<std::byte> in_out, std::uint32_t root) {
    return run(plan_.broadcast(in_out, root));
  }
  /// Writes part `rank` of the root's `in` to `out`; the `in` of other ranks is not read.
  [[nodiscard]] Shared<void> scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                     std::uint32_t root) {
    return run(plan_.scatter(in, out, root));
  }
  /// Writes `in` of each rank to part `rank` of the root's `out`; the `out` of other ranks is not
  /// written.
  [[nodiscard]] Shared<void> gather(std::span<const std::byte> in, std::span<std::byte> out,
                                    std::uint32_t root) {
    return run(plan_.gather(in, out, root));
  }
  /// Part r of `in` becomes part `rank` of rank r's `out`. `in` and `out` do not overlap.
  [[nodiscard]] Shared<void> all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
    return run(plan_.all_to_all(in, out));
  }
  /// Sends to one rank, which alone calls receive().
  [[nodiscard]] Shared<void> send(std::span<const std::byte> bytes, std::uint32_t to) {
    return run(plan_.send(bytes, to));
  }
  [[nodiscard]] Shared<void> receive(std::span<std::byte> bytes, std::uint32_t from) {
    return run(plan_.receive(bytes, from));
  }
  /// The two halves of send(): the bytes must not change between them. The receiver sees no
  /// difference.
  [[nodiscard]] Shared<PartOnItsWay> begin_send(std::span<const std::byte> bytes, std::uint32_t to);
  [[nodiscard]] Shared<void> end_send(const PartOnItsWay& part) { return exchange_.arrived(part); }

 private:
  [[nodiscard]] Shared<void> run(Rounds rounds) {
    return exchange_.operations().run(std::move(rounds));
  }

  PeerExchange& exchange_;
  CollectivePlan plan_;
};

}  // namespace orrery

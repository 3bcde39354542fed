// runtime/collectives/communicator.hpp - the collective operations of a group of ranks.
//
// Built over one PeerExchange, for one generation of a group; used by one thread, and all ranks of
// the group call the same operations in the same order. Several may share an exchange, each among
// some of its ranks, as long as any two ranks come to what they do together in the same order. A
// rank's death, in the group or outside of it, is PeerLost at all others, never a hang. Sums are in
// the order of a fixed tree (reduction_tree.hpp), so they have the same bits in every run, whatever
// the backend; also of operations that are begun and waited for later. Buffers within the group's
// workspace are not copied between ranks of one machine.
// Cost: what each says, in bytes through the slowest rank.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "runtime/collectives/collective_plan.hpp"
#include "runtime/collectives/operation_queue.hpp"

namespace orrery {

class Communicator {
 public:
  /// Of all ranks of the exchange, which outlives it.
  explicit Communicator(PeerExchange& exchange);
  /// Of `members` alone: ranks of the exchange, ascending, with this one among them. They count
  /// from 0 here. In a PeerLost ranks are those of the exchange.
  Communicator(PeerExchange& exchange, std::vector<std::uint32_t> members);

  [[nodiscard]] std::uint32_t rank() const { return plan_.rank(); }
  [[nodiscard]] std::uint32_t size() const { return plan_.size(); }

  /// Every operation below may also be begun now and waited for later, as
  /// `begin(plan().all_reduce(elements))`: what it reads must not change, and what it writes not be
  /// looked at, until the handle is done.
  [[nodiscard]] const CollectivePlan& plan() const { return plan_; }
  [[nodiscard]] Pending begin(Rounds rounds) {
    return exchange_.operations().begin(std::move(rounds));
  }
  /// Lets what was begun go on, without waiting: to be called now and then while computing.
  void progress() { (void)exchange_.operations().progress(); }

  /// PeerExchange::watch().
  [[nodiscard]] std::optional<PeerLost> watch(Duration patience) {
    return exchange_.watch(patience);
  }

  /// Every rank has come here.
  [[nodiscard]] Shared<void> barrier() { return run(plan_.barrier()); }
  /// In place. 2 (n - 1) / n of the bytes, in two steps; of few bytes all, in one.
  [[nodiscard]] Shared<void> all_reduce(const Elements& in_out) {
    return run(plan_.all_reduce(in_out));
  }
  /// In place, where each rank holds the sum of one node of a tree over `leaves` (share_leaves):
  /// all have the sum over all leaves then, the same bits however many ranks there are.
  [[nodiscard]] Shared<void> all_reduce_shards(const Elements& in_out,
                                               std::span<const LeafRange> owned_by_rank) {
    return run(plan_.all_reduce_shards(in_out, owned_by_rank));
  }
  /// The first of its two steps of many bytes: each has that sum in its own of the `parts`, and its
  /// own elements in the others. Precondition: each rank has a part, and they do not overlap.
  [[nodiscard]] Shared<void> reduce_scatter_shards(const Elements& in_out,
                                                   std::span<const LeafRange> owned_by_rank,
                                                   std::span<const RankPart> parts) {
    return run(plan_.reduce_scatter_shards(in_out, owned_by_rank, parts));
  }
  /// The second: each part of `in_out` as its rank has it.
  [[nodiscard]] Shared<void> all_gather_parts(std::span<std::byte> in_out,
                                              std::span<const RankPart> parts) {
    return run(plan_.all_gather_parts(in_out, parts));
  }
  /// The sum of part `rank` of `in` (equal parts, by rank), into `out`, which may be that part. All
  /// of `in` is as it was, but for that. Precondition: in is `size` times as long as out.
  [[nodiscard]] Shared<void> reduce_scatter(const Elements& in, std::span<std::byte> out) {
    return run(plan_.reduce_scatter(in, out));
  }
  /// `in` of each rank, one after the other, into `out`. `in` may be its own part of out.
  [[nodiscard]] Shared<void> all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
    return run(plan_.all_gather(in, out));
  }
  /// Of the root's bytes.
  [[nodiscard]] Shared<void> broadcast(std::span<std::byte> in_out, std::uint32_t root) {
    return run(plan_.broadcast(in_out, root));
  }
  /// Part `rank` of the root's `in` into `out`; other ranks' `in` is not looked at.
  [[nodiscard]] Shared<void> scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                     std::uint32_t root) {
    return run(plan_.scatter(in, out, root));
  }
  /// The other way: into the root's `out`; others' is not written.
  [[nodiscard]] Shared<void> gather(std::span<const std::byte> in, std::span<std::byte> out,
                                    std::uint32_t root) {
    return run(plan_.gather(in, out, root));
  }
  /// Part r of `in` becomes part `rank` of rank r's `out`. They do not overlap.
  [[nodiscard]] Shared<void> all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
    return run(plan_.all_to_all(in, out));
  }
  /// Between two ranks alone.
  [[nodiscard]] Shared<void> send(std::span<const std::byte> bytes, std::uint32_t to) {
    return run(plan_.send(bytes, to));
  }
  [[nodiscard]] Shared<void> receive(std::span<std::byte> bytes, std::uint32_t from) {
    return run(plan_.receive(bytes, from));
  }
  /// send() in two halves: the bytes must not change between them. Receivers see no difference.
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

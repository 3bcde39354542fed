// serving/routing/prefix_index.hpp - which replicas are believed to have which beginnings of
// prompts in their caches.
//
// A prompt is a chain of block hashes; the hash of a block covers all blocks before it and what
// must not be shared (service, tools, salt). A router has one index (RouterState), which it tells
// what it sends where; engines that tell their events may feed it as well. Pure; not thread-safe.
// Invariants:
//   1. A replica has at most its capacity of blocks, as its cache has; all replicas together have
//   at
//      most blocks_max. The blocks that a replica used longest ago leave first.
//   2. What a chain's end needs leaves after it: its blocks count as used from the last to the
//      first.
// Memory: at most 104 bytes a block of a replica; fewer where replicas share blocks.
// Cost: match O(blocks of the chain that any of the replicas has, for each 64 slots), store
// O(blocks), about 20 ns a block; remove O(1), clear O(blocks of the replica).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "serving/routing/block_map.hpp"
#include "serving/routing/replica_blocks.hpp"

namespace orrery {

class PrefixIndex {
 public:
  /// `blocks_max`: of all replicas together.
  explicit PrefixIndex(std::size_t blocks_max) : blocks_max_(blocks_max) {}

  /// Says how many blocks the cache of a replica holds; 0, as at first: none are kept of it.
  void set_capacity(std::uint32_t slot, std::size_t blocks);

  /// Writes how many leading blocks of a chain each of `slots` has.
  /// Precondition: `leading` is as long as `slots`.
  void match(std::span<const std::uint64_t> chain, std::span<const std::uint32_t> slots,
             std::span<std::uint32_t> leading) const;
  /// A replica has these blocks of a chain now, in their order; of more than its capacity the
  /// first ones.
  void store(std::uint32_t slot, std::span<const std::uint64_t> blocks);
  void remove(std::uint32_t slot, std::uint64_t block);
  /// Forgets the blocks that a replica used longest ago.
  void forget_oldest(std::uint32_t slot, std::size_t blocks);
  /// Forgets all blocks of a replica.
  void clear(std::uint32_t slot);

  /// Blocks of a replica, and of all.
  [[nodiscard]] std::size_t blocks_of(std::uint32_t slot) const;
  [[nodiscard]] std::size_t blocks() const { return blocks_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Replica {
    ReplicaBlocks blocks;
    std::size_t capacity = 0;
  };
  static constexpr std::size_t kShards = 64;

  void disown(std::uint32_t slot, std::uint64_t block);
  void make_room(std::uint32_t slot);
  [[nodiscard]] BlockMap& owners_of(std::uint64_t key);
  [[nodiscard]] const BlockMap& owners_of(std::uint64_t key) const;

  std::size_t blocks_max_;
  std::size_t blocks_ = 0;
  std::vector<Replica> replicas_;  ///< by slot
  /// Replicas of a block, a bit each, 64 slots an entry; several maps, so that none that grows
  /// takes long.
  std::array<BlockMap, kShards> owners_;
};

}  // namespace orrery

// serving/routing/replica_blocks.hpp - the blocks of prompts that one replica is believed to have
// in its cache, by when they were last used.
//
// The prefix index has one for each replica. A list by use over a pool, and a map into it; both
// grow with what is stored and never beyond the capacity. A plain value. Not thread-safe.
// Invariant: at most `capacity` blocks; the one that was used longest ago leaves first.
// Cost: O(1) expected a call; 37 to 59 bytes a block.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "serving/routing/block_map.hpp"

namespace orrery {

class ReplicaBlocks {
 public:
  struct Stored {
    bool added = false;                    ///< it was not there
    std::optional<std::uint64_t> evicted;  ///< the block that left for it
  };
  /// Makes a block the one that was used last. Precondition: capacity > 0.
  Stored store(std::uint64_t hash, std::size_t capacity);
  /// Forgets a block; false: it is not there.
  bool remove(std::uint64_t hash);
  /// Forgets the block that was used longest ago and returns it; none: there is no block.
  std::optional<std::uint64_t> evict();
  void clear();

  [[nodiscard]] bool contains(std::uint64_t hash) const { return nodes_by_hash_.find(hash) != 0; }
  /// The block that was used longest ago. Precondition: there is one.
  [[nodiscard]] std::uint64_t oldest() const { return nodes_[oldest_ - 1].hash; }
  [[nodiscard]] std::size_t size() const { return nodes_by_hash_.size(); }
  [[nodiscard]] std::size_t bytes() const {
    return nodes_.capacity() * sizeof(Node) + nodes_by_hash_.bytes();
  }
  void prefetch(std::uint64_t hash) const { nodes_by_hash_.prefetch(hash); }

 private:
  /// Nodes are numbered from 1; 0 is none.
  struct Node {
    std::uint64_t hash = 0;
    std::uint32_t newer = 0;
    std::uint32_t older = 0;  ///< of a free node: the next free one
  };

  Node& node(std::uint32_t number) { return nodes_[number - 1]; }
  void link_newest(std::uint32_t number);
  void unlink(std::uint32_t number);
  void drop(std::uint32_t number);

  std::vector<Node> nodes_;
  BlockMap nodes_by_hash_;
  std::uint32_t newest_ = 0;
  std::uint32_t oldest_ = 0;
  std::uint32_t free_ = 0;
};

}  // namespace orrery

// gateway/caches/engine_blocks.hpp - the blocks that an engine has told of, by its names for them,
// as blocks of the chains that the router knows prompts by (kv_events/kv_event.hpp).
//
// The gateway has one for each engine that it reads. A plain value. Not thread-safe.
// Invariant: a block that an engine has in several copies is known until the last one is removed.
// Cost: O(tokens / kChainTokens) a block; 45 to 67 bytes for each kChainTokens that it holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv_events/kv_event.hpp"
#include "serving/routing/block_map.hpp"

namespace orrery {

class EngineBlocks {
 public:
  /// Returns the chain of these blocks; empty: what comes before them is not known.
  /// Precondition: block_tokens is a multiple of kChainTokens.
  [[nodiscard]] std::vector<std::uint64_t> store(const KvBlocksStored& stored);
  /// Returns the part of a chain that a block was, until the next call; empty: it is not known, or
  /// has copies left.
  [[nodiscard]] std::span<const std::uint64_t> remove(std::uint64_t name);
  void clear();

  /// Number of blocks of kChainTokens, copies counted once.
  [[nodiscard]] std::size_t size() const { return nodes_.size() - free_count_; }

 private:
  /// A part of kChainTokens of an engine's block. Nodes are numbered from 1; 0 is none.
  struct Node {
    std::uint64_t hash = 0;
    std::uint32_t next = 0;    ///< of the same block; of a free node: the next free one
    std::uint32_t copies = 0;  ///< of the block, in its first node
  };

  [[nodiscard]] std::uint32_t make_node(std::uint64_t hash);

  BlockMap first_;  ///< nodes by the engine's names
  std::vector<Node> nodes_;
  std::uint32_t free_ = 0;
  std::size_t free_count_ = 0;
  std::vector<std::uint64_t> removed_;
};

}  // namespace orrery

// inference/engine/kv_block_pool.hpp - which blocks of the KV cache are in use, and what the others
// still hold.
//
// Owned by an InferenceEngine, used by its thread. A block holds keys and values of 16 tokens; full
// blocks can be shared by sequences that begin with the same tokens. A full block is known by the
// hash of its tokens and of all before them. A block that no sequence uses any more keeps its
// content until it is needed: the one unused longest is taken first.
//
// Invariants:
//   1. free() + used() == total().
//   2. A block is used exactly if its reference count is positive.
//   3. A block that is used by several sequences is full, so none of them writes to it.
// Cost: O(log blocks) a call.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kv_events/kv_event.hpp"
#include "runtime/kernels/decode_kernels.hpp"

namespace orrery {

using KvBlockId = std::uint32_t;

/// Identifies a full block: the chain of hashes from the first token to its last.
struct KvBlockHash {
  std::uint64_t value = 0;
  friend auto operator<=>(const KvBlockHash&, const KvBlockHash&) = default;
};

class KvBlockPool {
 public:
  static constexpr std::size_t kTokens = PagedAttention::kBlock;  ///< of a block
  static_assert(kTokens == kChainTokens);

  explicit KvBlockPool(std::size_t blocks);

  [[nodiscard]] std::size_t total() const { return blocks_.size(); }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t free() const { return empty_.size() + unused_.size(); }
  /// Number of blocks whose content can be found.
  [[nodiscard]] std::size_t known() const { return known_.size(); }

  /// Takes a block for new tokens; nothing: all are in use.
  [[nodiscard]] std::optional<KvBlockId> take();
  /// Takes one more reference to the block of that content, if it is known and holds these tokens.
  [[nodiscard]] std::optional<KvBlockId> find(KvBlockHash hash,
                                              std::span<const std::int32_t> tokens);
  /// Makes a block known by its content, which follows `before` or begins a text, unless an equal
  /// one is known; returns its hash. Precondition: it is in use and full, tokens.size() == kTokens.
  KvBlockHash publish(KvBlockId block, const std::optional<KvBlockHash>& before,
                      std::span<const std::int32_t> tokens);
  /// Gives a reference back. Precondition: the block is in use.
  void release(KvBlockId block);

  /// Returns the hash of a full block that follows `before`, or begins a text.
  [[nodiscard]] static KvBlockHash chain(const std::optional<KvBlockHash>& before,
                                         std::span<const std::int32_t> tokens);

  /// Returns which blocks have become known or unknown since the last call, in that order.
  [[nodiscard]] std::vector<KvEvent> take_events() { return std::exchange(events_, {}); }

  /// Counts again what the counters say. For tests. O(blocks).
  [[nodiscard]] bool consistent() const;

 private:
  struct Block {
    std::uint32_t references = 0;
    std::optional<KvBlockHash> hash;       ///< set while it is known
    std::vector<std::int32_t> tokens;      ///< while it is known
    std::list<KvBlockId>::iterator place;  ///< in unused_, while it is known and unused
  };

  std::vector<Block> blocks_;
  std::vector<KvBlockId> empty_;  ///< neither used nor known
  std::list<KvBlockId> unused_;   ///< known, but not used: longest first
  std::map<KvBlockHash, KvBlockId> known_;
  std::size_t used_ = 0;
  std::vector<KvEvent> events_;
};

}  // namespace orrery

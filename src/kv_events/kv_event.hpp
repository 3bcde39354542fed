// kv_events/kv_event.hpp - what an inference engine tells of its KV cache: which blocks of tokens
// can be found in it from now on, and which cannot any more.
//
// Plain values. An engine names a block by a hash of its own, which is compared with its other
// names alone; what it stands for are the tokens of the block and of all blocks before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace orrery {

/// Blocks that follow one another.
struct KvBlocksStored {
  std::vector<std::uint64_t> hashes;    ///< the engine's names
  std::optional<std::uint64_t> parent;  ///< the block before the first; none: a text begins
  std::vector<std::int32_t> tokens;     ///< of all of them, block_tokens each
  std::uint32_t block_tokens = 0;

  friend bool operator==(const KvBlocksStored&, const KvBlocksStored&) = default;
};

struct KvBlocksRemoved {
  std::vector<std::uint64_t> hashes;

  friend bool operator==(const KvBlocksRemoved&, const KvBlocksRemoved&) = default;
};

struct KvCacheCleared {
  friend bool operator==(const KvCacheCleared&, const KvCacheCleared&) = default;
};

using KvEvent = std::variant<KvBlocksStored, KvBlocksRemoved, KvCacheCleared>;

/// What an engine tells in one message.
struct KvEventBatch {
  double time_s = 0;  ///< seconds since 1970 by the engine's clock
  std::vector<KvEvent> events;

  friend bool operator==(const KvEventBatch&, const KvEventBatch&) = default;
};

/// Tokens of a block of a chain.
inline constexpr std::uint32_t kChainTokens = 16;

/// Returns the hash of the tokens of a block and of all before it; `before`: the hash of the block
/// before, 0 where a text begins.
[[nodiscard]] std::uint64_t next_in_chain(std::uint64_t before,
                                          std::span<const std::int32_t> tokens);

/// Returns the hashes of the full blocks of kChainTokens, of which the first follows `before`.
[[nodiscard]] std::vector<std::uint64_t> token_chain(std::span<const std::int32_t> tokens,
                                                     std::uint64_t before);

}  // namespace orrery

// gateway/caches/cache_events.hpp - has a gateway's router believe what the replicas' engines tell
// of their KV caches.
//
// The gateway owns one where it reads prompts as tokens; its core and the loop outlive it. On the
// loop's thread. Read are the replicas of services with a tokenizer that say where they tell: only
// there a prompt and an engine's blocks are the same chain.
//   1. Stored and removed blocks are so in the router's index, beside what the router itself sends.
//   2. A message that is missing or cannot be read, an engine that begins anew, blocks that are no
//      multiple of kChainTokens: all that was believed of the replica is forgotten. What it tells
//      afterwards is believed, as far as the beginnings of its texts are known.
//   3. A replica's cache is told, not guessed, while every message since its first was read.
// Memory: that of the blocks that its cache holds, at most twice
// (gateway/caches/engine_blocks.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gateway/caches/engine_blocks.hpp"
#include "gateway/gateway_core.hpp"
#include "kv_events/kv_event_reader.hpp"

namespace orrery {

struct CacheFigures {
  std::size_t engines = 0;
  std::uint64_t messages = 0;
  std::uint64_t gaps = 0;
};

class CacheEvents {
 public:
  explicit CacheEvents(GatewayCore& core);

  /// Reads the engines of the router's table, and no others. Precondition: it is that of the core.
  void set_table(const RouteTable& table);
  /// A message of an engine has come, or why it cannot be read.
  void take(std::uint64_t engine, const Result<KvEventMessage>& message);

  [[nodiscard]] CacheFigures figures() const;
  /// The number of a replica's engine; nothing: it is not read.
  [[nodiscard]] std::optional<std::uint64_t> engine_of(const ReplicaKey& replica) const;

 private:
  struct Engine {
    ReplicaKey replica;
    std::string address;
    std::uint32_t slot = 0;
    std::size_t blocks_max = 0;
    EngineBlocks blocks;
    std::optional<std::uint64_t> next;  ///< number of the message that is due; none: any
    bool warned = false;                ///< its errors are in the log
  };

  [[nodiscard]] bool apply(Engine& engine, const KvEvent& event);
  void forget(Engine& engine);
  void warn(Engine& engine, const std::string& why);

  GatewayCore& core_;
  std::map<std::uint64_t, Engine> engines_;  ///< by their numbers
  std::uint64_t next_engine_ = 1;
  CacheFigures figures_;
  KvEventReader reader_;  ///< ends first
};

}  // namespace orrery

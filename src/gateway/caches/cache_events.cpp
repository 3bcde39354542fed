#include "gateway/caches/cache_events.hpp"

#include <utility>
#include <variant>

namespace orrery {

CacheEvents::CacheEvents(GatewayCore& core)
    : core_(core),
      reader_(core.loop(), [this](std::uint64_t engine, const Result<KvEventMessage>& message) {
        take(engine, message);
      }) {}

std::optional<std::uint64_t> CacheEvents::engine_of(const ReplicaKey& replica) const {
  for (const auto& [number, engine] : engines_) {
    if (engine.replica == replica) return number;
  }
  return std::nullopt;
}

void CacheEvents::set_table(const RouteTable& table) {
  const RouterState& router = core_.router();
  std::map<std::uint64_t, Engine> kept;
  KvEventReader::Engines read;
  for (std::uint32_t at = 0; at < table.services.size(); ++at) {
    const RoutedService& service = table.services[at];
    if (!core_.options().tokenizers.contains(service.model)) continue;
    for (const RoutedReplica& replica : service.replicas) {
      if (replica.kv_events.empty()) continue;
      const ReplicaKey key{replica.job, replica.attempt};
      const auto known = engine_of(key);
      const std::uint64_t number =
          known && engines_.at(*known).address == replica.kv_events ? *known : next_engine_++;
      Engine& engine = kept[number];
      if (number == known) engine = std::move(engines_.at(number));
      engine.replica = key;
      engine.address = replica.kv_events;
      for (const std::uint32_t slot : router.slots_of(at)) {
        if (router.replica(slot).key == key) engine.slot = slot;
      }
      const std::uint64_t tokens =
          replica.kv_tokens == 0 ? router.options().caches.tokens : replica.kv_tokens;
      engine.blocks_max = 2 * static_cast<std::size_t>(tokens / kChainTokens);
      read.emplace(number, replica.kv_events);
    }
  }
  engines_ = std::move(kept);
  reader_.follow(std::move(read));
}

void CacheEvents::take(std::uint64_t number, const Result<KvEventMessage>& message) {
  const auto found = engines_.find(number);
  if (found == engines_.end()) return;
  Engine& engine = found->second;
  if (!message) {
    engine.next.reset();
    warn(engine, message.error().message);
    return forget(engine);
  }
  ++figures_.messages;
  if (engine.next && *engine.next != message->number) forget(engine);
  // An engine that is read from its first message on has told everything, unless one is missing.
  if (message->number == 0) core_.router().set_cache(engine.slot, RouterReplica::Cache::kTold);
  engine.next = message->number + 1;
  for (const KvEvent& event : message->batch.events) {
    if (!apply(engine, event)) return forget(engine);
  }
}

/// Returns whether what is known of the cache is still of use.
bool CacheEvents::apply(Engine& engine, const KvEvent& event) {
  PrefixIndex& index = core_.router().index();
  if (const auto* stored = std::get_if<KvBlocksStored>(&event)) {
    if (stored->block_tokens % kChainTokens != 0) {
      warn(engine, fmt::format("blocks of {} tokens, expected a multiple of {}",
                               stored->block_tokens, kChainTokens));
      return false;
    }
    index.store(engine.slot, engine.blocks.store(*stored));
    return engine.blocks.size() <= engine.blocks_max;
  }
  if (const auto* removed = std::get_if<KvBlocksRemoved>(&event)) {
    for (const std::uint64_t name : removed->hashes) {
      for (const std::uint64_t block : engine.blocks.remove(name)) index.remove(engine.slot, block);
    }
    return true;
  }
  // It is empty, and so is what is known: nothing is missing.
  engine.blocks.clear();
  index.clear(engine.slot);
  core_.router().set_cache(engine.slot, RouterReplica::Cache::kTold);
  return true;
}

void CacheEvents::forget(Engine& engine) {
  ++figures_.gaps;
  engine.blocks.clear();
  core_.router().index().clear(engine.slot);
  core_.router().set_cache(engine.slot, RouterReplica::Cache::kGuessed);
}

void CacheEvents::warn(Engine& engine, const std::string& why) {
  if (std::exchange(engine.warned, true)) return;
  core_.log().warning(core_.now_wall(), "a replica's KV events cannot be used",
                      {{"job", engine.replica.job},
                       {"attempt", engine.replica.attempt},
                       {"address", engine.address},
                       {"why", why}});
}

CacheFigures CacheEvents::figures() const {
  CacheFigures figures = figures_;
  figures.engines = engines_.size();
  return figures;
}

}  // namespace orrery

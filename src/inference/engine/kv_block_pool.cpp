#include "inference/engine/kv_block_pool.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Adds a block to what is told: to the event before, where it follows that one's last block.
void add_stored(std::vector<KvEvent>& events, const std::optional<KvBlockHash>& before,
                KvBlockHash hash, std::span<const std::int32_t> tokens) {
  auto* last = events.empty() ? nullptr : std::get_if<KvBlocksStored>(&events.back());
  if (last == nullptr || !before || last->hashes.back() != before->value) {
    events.emplace_back(KvBlocksStored{.block_tokens = KvBlockPool::kTokens});
    last = std::get_if<KvBlocksStored>(&events.back());
    if (before) last->parent = before->value;
  }
  last->hashes.push_back(hash.value);
  last->tokens.insert(last->tokens.end(), tokens.begin(), tokens.end());
}

void add_removed(std::vector<KvEvent>& events, KvBlockHash hash) {
  auto* last = events.empty() ? nullptr : std::get_if<KvBlocksRemoved>(&events.back());
  if (last == nullptr) {
    last = std::get_if<KvBlocksRemoved>(&events.emplace_back(KvBlocksRemoved()));
  }
  last->hashes.push_back(hash.value);
}

}  // namespace

KvBlockPool::KvBlockPool(std::size_t blocks) : blocks_(blocks) {
  empty_.reserve(blocks);
  for (std::size_t i = blocks; i-- > 0;) empty_.push_back(static_cast<KvBlockId>(i));
}

std::optional<KvBlockId> KvBlockPool::take() {
  KvBlockId id = 0;
  if (!empty_.empty()) {
    id = empty_.back();
    empty_.pop_back();
  } else if (!unused_.empty()) {
    id = unused_.front();
    unused_.pop_front();
    known_.erase(*blocks_[id].hash);
    add_removed(events_, *blocks_[id].hash);
    blocks_[id].hash.reset();
  } else {
    return std::nullopt;
  }
  blocks_[id].references = 1;
  ++used_;
  return id;
}

std::optional<KvBlockId> KvBlockPool::find(KvBlockHash hash, std::span<const std::int32_t> tokens) {
  const auto found = known_.find(hash);
  if (found == known_.end()) return std::nullopt;
  Block& block = blocks_[found->second];
  if (!std::ranges::equal(block.tokens, tokens)) return std::nullopt;
  if (block.references++ == 0) {
    unused_.erase(block.place);
    ++used_;
  }
  return found->second;
}

KvBlockHash KvBlockPool::publish(KvBlockId id, const std::optional<KvBlockHash>& before,
                                 std::span<const std::int32_t> tokens) {
  const KvBlockHash hash = chain(before, tokens);
  Block& block = blocks_[id];
  ORRERY_ASSERT(block.references > 0 && tokens.size() == kTokens, "the block is used and full");
  if (block.hash || !known_.emplace(hash, id).second) return hash;
  block.hash = hash;
  block.tokens.assign(tokens.begin(), tokens.end());
  add_stored(events_, before, hash, tokens);
  return hash;
}

void KvBlockPool::release(KvBlockId id) {
  Block& block = blocks_[id];
  ORRERY_ASSERT(block.references > 0, "the block is used");
  if (--block.references > 0) return;
  --used_;
  if (block.hash) {
    block.place = unused_.insert(unused_.end(), id);
  } else {
    empty_.push_back(id);
  }
}

KvBlockHash KvBlockPool::chain(const std::optional<KvBlockHash>& before,
                               std::span<const std::int32_t> tokens) {
  return {next_in_chain(before ? before->value : 0, tokens)};
}

bool KvBlockPool::consistent() const {
  const auto count = [&](auto condition) {
    return static_cast<std::size_t>(std::ranges::count_if(blocks_, condition));
  };
  return count([](const Block& each) { return each.references > 0; }) == used_ &&
         count([](const Block& each) { return each.references == 0 && each.hash; }) ==
             unused_.size() &&
         count([](const Block& each) { return each.hash.has_value(); }) == known_.size() &&
         free() + used_ == total();
}

}  // namespace orrery

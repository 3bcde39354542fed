#include "gateway/caches/engine_blocks.hpp"

namespace orrery {

std::vector<std::uint64_t> EngineBlocks::store(const KvBlocksStored& stored) {
  std::uint64_t before = 0;
  if (stored.parent) {
    auto node = static_cast<std::uint32_t>(first_.find(*stored.parent));
    if (node == 0) return {};
    for (; node != 0; node = nodes_[node - 1].next) before = nodes_[node - 1].hash;
  }
  const std::vector<std::uint64_t> chain = token_chain(stored.tokens, before);
  const std::size_t parts = stored.block_tokens / kChainTokens;
  for (std::size_t i = 0; i < stored.hashes.size(); ++i) {
    const std::uint64_t name = stored.hashes[i];
    if (const std::uint64_t known = first_.find(name); known != 0) {
      ++nodes_[known - 1].copies;
      continue;
    }
    std::uint32_t next = 0;
    for (std::size_t part = parts; part-- > 0;) {
      const std::uint32_t node = make_node(chain[i * parts + part]);
      nodes_[node - 1].next = next;
      next = node;
    }
    nodes_[next - 1].copies = 1;
    first_.set(name, next);
  }
  return chain;
}

std::span<const std::uint64_t> EngineBlocks::remove(std::uint64_t name) {
  auto node = static_cast<std::uint32_t>(first_.find(name));
  if (node == 0 || --nodes_[node - 1].copies > 0) return {};
  first_.erase(name);
  removed_.clear();
  while (node != 0) {
    Node& each = nodes_[node - 1];
    removed_.push_back(each.hash);
    const std::uint32_t next = each.next;
    each.next = free_;
    free_ = node;
    ++free_count_;
    node = next;
  }
  return removed_;
}

void EngineBlocks::clear() { *this = {}; }

std::uint32_t EngineBlocks::make_node(std::uint64_t hash) {
  std::uint32_t node = free_;
  if (node == 0) {
    nodes_.emplace_back();
    node = static_cast<std::uint32_t>(nodes_.size());
  } else {
    free_ = nodes_[node - 1].next;
    --free_count_;
  }
  nodes_[node - 1] = {.hash = hash};
  return node;
}

}  // namespace orrery

#include "serving/routing/replica_blocks.hpp"

namespace orrery {

ReplicaBlocks::Stored ReplicaBlocks::store(std::uint64_t hash, std::size_t capacity) {
  const auto known = static_cast<std::uint32_t>(nodes_by_hash_.find(hash));
  if (known != 0) {
    if (known != newest_) {
      unlink(known);
      link_newest(known);
    }
    return {};
  }
  Stored stored{.added = true, .evicted = {}};
  if (size() >= capacity) stored.evicted = evict();
  std::uint32_t number = free_;
  if (number != 0) {
    free_ = node(number).older;
  } else {
    nodes_.emplace_back();
    number = static_cast<std::uint32_t>(nodes_.size());
  }
  node(number).hash = hash;
  nodes_by_hash_.set(hash, number);
  link_newest(number);
  return stored;
}

bool ReplicaBlocks::remove(std::uint64_t hash) {
  const auto number = static_cast<std::uint32_t>(nodes_by_hash_.find(hash));
  if (number == 0) return false;
  drop(number);
  return true;
}

void ReplicaBlocks::drop(std::uint32_t number) {
  unlink(number);
  nodes_by_hash_.erase(node(number).hash);
  node(number).older = free_;
  free_ = number;
}

std::optional<std::uint64_t> ReplicaBlocks::evict() {
  if (oldest_ == 0) return std::nullopt;
  const std::uint64_t hash = node(oldest_).hash;
  drop(oldest_);
  return hash;
}

void ReplicaBlocks::clear() { *this = {}; }

void ReplicaBlocks::link_newest(std::uint32_t number) {
  node(number).newer = 0;
  node(number).older = newest_;
  if (newest_ != 0) node(newest_).newer = number;
  newest_ = number;
  if (oldest_ == 0) oldest_ = number;
}

void ReplicaBlocks::unlink(std::uint32_t number) {
  const Node& each = node(number);
  (each.newer != 0 ? node(each.newer).older : newest_) = each.older;
  (each.older != 0 ? node(each.older).newer : oldest_) = each.newer;
}

}  // namespace orrery

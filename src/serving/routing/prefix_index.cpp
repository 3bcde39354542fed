#include "serving/routing/prefix_index.hpp"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

constexpr std::uint32_t kGroup = 64;  ///< slots that share an entry
/// How many blocks ahead of the one in hand are brought into the cache.
constexpr std::size_t kAhead = 6;

std::uint64_t bit_of(std::uint32_t slot) { return std::uint64_t{1} << (slot % kGroup); }

/// The key of a block and a group of slots.
std::uint64_t key_of(std::uint64_t block, std::uint32_t group) {
  return block ^ (group * 0xD6E8'FEB8'6659'FD93U);
}

/// Slots of one group that are asked for, and how many leading blocks each has.
struct AskedGroup {
  std::uint32_t group = 0;
  std::uint64_t slots = 0;
  std::array<std::uint32_t, kGroup> leading{};
};

AskedGroup& group_of(std::vector<AskedGroup>& groups, std::uint32_t slot) {
  for (AskedGroup& each : groups) {
    if (each.group == slot / kGroup) return each;
  }
  groups.push_back({.group = slot / kGroup});
  return groups.back();
}

}  // namespace

BlockMap& PrefixIndex::owners_of(std::uint64_t key) {
  return owners_[(key * 0xA076'1D64'78BD'642FU) >> 58U];
}

const BlockMap& PrefixIndex::owners_of(std::uint64_t key) const {
  return owners_[(key * 0xA076'1D64'78BD'642FU) >> 58U];
}

void PrefixIndex::set_capacity(std::uint32_t slot, std::size_t blocks) {
  if (slot >= replicas_.size()) replicas_.resize(slot + 1);
  Replica& replica = replicas_[slot];
  replica.capacity = blocks;
  if (replica.blocks.size() > blocks) forget_oldest(slot, replica.blocks.size() - blocks);
}

void PrefixIndex::match(std::span<const std::uint64_t> chain, std::span<const std::uint32_t> slots,
                        std::span<std::uint32_t> leading) const {
  std::vector<AskedGroup> groups;
  for (const std::uint32_t slot : slots) group_of(groups, slot).slots |= bit_of(slot);
  for (AskedGroup& asked : groups) {
    std::uint64_t having = asked.slots;
    std::uint32_t count = 0;
    for (std::size_t at = 0; at < chain.size(); ++at) {
      if (at + kAhead < chain.size()) {
        const std::uint64_t ahead = key_of(chain[at + kAhead], asked.group);
        owners_of(ahead).prefetch(ahead);
      }
      const std::uint64_t key = key_of(chain[at], asked.group);
      const std::uint64_t still = having & owners_of(key).find(key);
      for (std::uint64_t left = having & ~still; left != 0; left &= left - 1) {
        asked.leading[static_cast<std::size_t>(std::countr_zero(left))] = count;
      }
      having = still;
      if (having == 0) break;
      ++count;
    }
    for (; having != 0; having &= having - 1) {
      asked.leading[static_cast<std::size_t>(std::countr_zero(having))] = count;
    }
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    leading[i] = group_of(groups, slots[i]).leading[slots[i] % kGroup];
  }
}

void PrefixIndex::store(std::uint32_t slot, std::span<const std::uint64_t> blocks) {
  if (slot >= replicas_.size()) return;
  const std::size_t capacity = std::min(replicas_[slot].capacity, blocks_max_);
  const std::size_t count = std::min(blocks.size(), capacity);
  ReplicaBlocks& own = replicas_[slot].blocks;
  for (std::size_t at = count; at-- > 0;) {
    if (at >= kAhead) {
      own.prefetch(blocks[at - kAhead]);
      const std::uint64_t ahead = key_of(blocks[at - kAhead], slot / kGroup);
      owners_of(ahead).prefetch(ahead);
    }
    if (blocks_ >= blocks_max_ && !own.contains(blocks[at])) make_room(slot);
    const ReplicaBlocks::Stored stored = own.store(blocks[at], capacity);
    if (!stored.added) continue;
    ++blocks_;
    if (stored.evicted) {
      disown(slot, *stored.evicted);
      // The next one to leave is known before it does.
      const std::uint64_t next = key_of(own.oldest(), slot / kGroup);
      own.prefetch(own.oldest());
      owners_of(next).prefetch(next);
    }
    const std::uint64_t key = key_of(blocks[at], slot / kGroup);
    owners_of(key).set_bits(key, bit_of(slot));
  }
}

/// Has a block leave: of the replica itself where it has its part of all, else of the largest.
void PrefixIndex::make_room(std::uint32_t slot) {
  std::uint32_t from = slot;
  if (replicas_[slot].blocks.size() * replicas_.size() < blocks_max_) {
    const auto largest = std::ranges::max_element(
        replicas_, {}, [](const Replica& each) { return each.blocks.size(); });
    from = static_cast<std::uint32_t>(largest - replicas_.begin());
  }
  forget_oldest(from, 1);
}

/// Takes the bit of a block that a replica has lost.
void PrefixIndex::disown(std::uint32_t slot, std::uint64_t block) {
  --blocks_;
  const std::uint64_t key = key_of(block, slot / kGroup);
  owners_of(key).clear_bits(key, bit_of(slot));
}

void PrefixIndex::remove(std::uint32_t slot, std::uint64_t block) {
  if (slot < replicas_.size() && replicas_[slot].blocks.remove(block)) disown(slot, block);
}

void PrefixIndex::forget_oldest(std::uint32_t slot, std::size_t blocks) {
  if (slot >= replicas_.size()) return;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::optional<std::uint64_t> evicted = replicas_[slot].blocks.evict();
    if (!evicted) return;
    disown(slot, *evicted);
  }
}

void PrefixIndex::clear(std::uint32_t slot) {
  if (slot >= replicas_.size()) return;
  forget_oldest(slot, replicas_[slot].blocks.size());
  replicas_[slot].blocks.clear();
}

std::size_t PrefixIndex::blocks_of(std::uint32_t slot) const {
  return slot < replicas_.size() ? replicas_[slot].blocks.size() : 0;
}

std::size_t PrefixIndex::bytes() const {
  std::size_t bytes = replicas_.capacity() * sizeof(Replica);
  for (const Replica& each : replicas_) bytes += each.blocks.bytes();
  for (const BlockMap& each : owners_) bytes += each.bytes();
  return bytes;
}

}  // namespace orrery

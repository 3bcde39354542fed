#include "tokens/bpe/word_cache.hpp"

#include <algorithm>
#include <bit>

#include "tokens/bpe/merge_tables.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPlacesMin = 64;
constexpr std::size_t kPayloadMax = 15;  ///< numbers of a place behind its head
constexpr std::size_t kWordMax = 56;     ///< bytes
constexpr std::uint64_t kChange = std::uint64_t{1} << 32;
/// The bits of a head that differ between words, and the one that says that it is being written.
constexpr std::uint64_t kIdentity = 0xFFFF00FF | kChange;

std::uint64_t identity_of(std::string_view word, std::uint64_t hash) {
  return word.size() | ((hash >> 48) << 16);
}

std::size_t chunks_of(std::string_view word) { return (word.size() + 7) / 8; }

std::uint64_t changes_of(std::uint64_t head) { return head / kChange; }

std::uint64_t bits_of(std::int32_t token) { return static_cast<std::uint32_t>(token); }

}  // namespace

WordCache::WordCache(std::size_t vocabulary)
    : mask_(std::clamp(std::bit_ceil(2 * vocabulary + 1), kPlacesMin, kPlacesMax) - 1),
      places_(std::make_unique<Place[]>(mask_ + 1)) {}

bool WordCache::append(std::string_view word, std::uint64_t hash,
                       std::vector<std::int32_t>& to) const {
  if (word.size() > kWordMax) return false;
  const std::size_t at = hash & mask_;
  return append_from(places_[at], word, hash, to) || append_from(places_[at ^ 1], word, hash, to);
}

// If a number is of a later word, the thread that stored it had made the head odd before, and this
// thread sees that at the end, since its loads acquire what the stores release.
bool WordCache::append_from(const Place& place, std::string_view word, std::uint64_t hash,
                            std::vector<std::int32_t>& to) {
  const std::uint64_t head = place.numbers[0].load(std::memory_order_acquire);
  if ((head & kIdentity) != identity_of(word, hash)) return false;
  std::size_t at = 1;
  for (std::size_t byte = 0; byte < word.size(); byte += 8, ++at) {
    if (place.numbers[at].load(std::memory_order_acquire) != word_chunk(word, byte)) return false;
  }
  const std::size_t begin = to.size();
  const std::size_t count = (head >> 8) & 0xFF;
  for (std::size_t i = 0; i < count; i += 2, ++at) {
    const std::uint64_t pair = place.numbers[at].load(std::memory_order_acquire);
    to.push_back(static_cast<std::int32_t>(pair));
    if (i + 1 < count) to.push_back(static_cast<std::int32_t>(pair >> 32));
  }
  if (place.numbers[0].load(std::memory_order_relaxed) == head) return true;
  to.resize(begin);
  return false;
}

void WordCache::keep(std::string_view word, std::uint64_t hash,
                     std::span<const std::int32_t> tokens) const {
  if (word.empty() || word.size() > kWordMax) return;
  if (chunks_of(word) + (tokens.size() + 1) / 2 > kPayloadMax) return;
  Place* place = &places_[hash & mask_];
  std::uint64_t head = place->numbers[0].load(std::memory_order_relaxed);
  Place* other = &places_[(hash & mask_) ^ 1];
  const std::uint64_t other_head = other->numbers[0].load(std::memory_order_relaxed);
  if (changes_of(other_head) < changes_of(head)) {
    place = other;
    head = other_head;
  }
  if ((head & kChange) != 0) return;
  if (!place->numbers[0].compare_exchange_strong(head, head + kChange, std::memory_order_acq_rel)) {
    return;
  }
  std::size_t at = 1;
  for (std::size_t byte = 0; byte < word.size(); byte += 8, ++at) {
    place->numbers[at].store(word_chunk(word, byte), std::memory_order_release);
  }
  for (std::size_t i = 0; i < tokens.size(); i += 2, ++at) {
    const std::uint64_t second = i + 1 < tokens.size() ? bits_of(tokens[i + 1]) : 0;
    place->numbers[at].store(bits_of(tokens[i]) | (second << 32), std::memory_order_release);
  }
  const std::uint64_t changes = changes_of(head) + 2;
  place->numbers[0].store((changes * kChange) | (tokens.size() << 8) | identity_of(word, hash),
                          std::memory_order_release);
}

}  // namespace orrery

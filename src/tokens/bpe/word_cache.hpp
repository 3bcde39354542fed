// tokens/bpe/word_cache.hpp - the tokens of words that were encoded lately: most words of a text
// stood in it before, and merging is slow.
//
// Owned by a MergeModel and made with it. Safe from every thread, without locks: threads share what
// they keep, and a word that is being written is not found meanwhile. Invariant: what is found is
// what was kept for that word, so the cache changes no result. Memory: fixed, 128 bytes a place, at
// most 4 MiB. Cost: a look-up reads one or two places, most of them one cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace orrery {

class WordCache {
 public:
  static constexpr std::size_t kPlacesMax = std::size_t{1} << 15;

  /// Makes places for a vocabulary of that many tokens: a small one needs few.
  explicit WordCache(std::size_t vocabulary);

  /// Appends the tokens of a word that was kept; returns whether it was found. `hash` is
  /// word_hash(word).
  [[nodiscard]] bool append(std::string_view word, std::uint64_t hash,
                            std::vector<std::int32_t>& to) const;
  /// Keeps a word in place of one that is as old or older; words and tokens that are too long for a
  /// place (15 chunks of eight bytes) are not kept.
  void keep(std::string_view word, std::uint64_t hash, std::span<const std::int32_t> tokens) const;

  [[nodiscard]] std::size_t places() const { return mask_ + 1; }

 private:
  /// A place: its head, then the chunks of the word, then its tokens, two in a number. The head
  /// holds the size of the word (0: the place is free), the number of tokens, bits of the hash and
  /// the number of changes, which is odd while the place is written.
  struct alignas(128) Place {
    std::array<std::atomic<std::uint64_t>, 16> numbers{};
  };

  [[nodiscard]] static bool append_from(const Place& place, std::string_view word,
                                        std::uint64_t hash, std::vector<std::int32_t>& to);

  std::size_t mask_;
  std::unique_ptr<Place[]> places_;
};

}  // namespace orrery

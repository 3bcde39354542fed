// tokens/bpe/merge_tables.hpp - the hash tables of byte-pair merging: words to tokens, pairs of
// tokens to their merge, and between which characters a word can be cut.
//
// Built while a tokenizer is loaded, then immutable: safe from every thread. Cost: open addressing
// at half load, so a look-up is one or two cache lines.
#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

static_assert(std::endian::native == std::endian::little, "chunks are cut by shifts");

/// Returns the bytes at `at` as a number.
template <class Number>
[[nodiscard]] inline std::uint64_t number_at(const char* at) {
  Number number = 0;
  std::memcpy(&number, at, sizeof(number));
  return number;
}

/// Returns the eight bytes of a word from `at` on as a number; behind its end they are 0.
/// Precondition: `at` is a multiple of 8 inside the word.
[[nodiscard]] inline std::uint64_t word_chunk(std::string_view word, std::size_t at) {
  const char* from = word.data() + at;
  const std::size_t left = word.size() - at;
  if (left >= 8) return number_at<std::uint64_t>(from);
  // Bytes that are read twice are laid over themselves.
  if (at >= 8) return number_at<std::uint64_t>(from + left - 8) >> (8 * (8 - left));
  if (left >= 4) {
    return number_at<std::uint32_t>(from) |
           (number_at<std::uint32_t>(from + left - 4) << (8 * (left - 4)));
  }
  return number_at<std::uint8_t>(from) |
         (number_at<std::uint8_t>(from + left / 2) << (8 * (left / 2))) |
         (number_at<std::uint8_t>(from + left - 1) << (8 * (left - 1)));
}

[[nodiscard]] inline std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15;
  return value ^ (value >> 32);
}

/// Returns the hash of a word. O(bytes).
[[nodiscard]] inline std::uint64_t word_hash(std::string_view word) {
  std::uint64_t hash = word.size();
  for (std::size_t at = 0; at < word.size(); at += 8) hash = mixed(hash ^ word_chunk(word, at));
  return mixed(hash);
}

/// Words of a vocabulary. Words are added before the first look-up.
class WordTable {
 public:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t begin = 0;
    std::uint32_t size = 0;  ///< 0: the entry is free
    std::int32_t token = 0;
    bool merged = false;  ///< the merges of the word end in this token alone
  };

  /// Makes room for `words` words.
  void reserve(std::size_t words);
  /// Adds a word that is not empty; the last of equal words counts.
  void add(std::string_view word, std::int32_t token);
  [[nodiscard]] const Entry* find(std::string_view word) const {
    return find(word, word_hash(word));
  }
  /// Finds a word whose hash is known.
  [[nodiscard]] const Entry* find(std::string_view word, std::uint64_t hash) const;
  [[nodiscard]] std::span<Entry> entries() { return entries_; }
  [[nodiscard]] std::string_view word_of(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.begin, entry.size);
  }

 private:
  [[nodiscard]] std::size_t place_of(std::string_view word, std::uint64_t hash) const;

  std::string bytes_;
  std::vector<Entry> entries_;
};

/// A merge of two tokens; a lower rank goes first.
struct Merge {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;  ///< rank of a pair that is not merged

  std::uint32_t rank = kNone;
  std::int32_t token = 0;
};

class PairTable {
 public:
  void reserve(std::size_t pairs);
  /// The last of equal pairs counts.
  void add(std::uint64_t pair, Merge merge);
  [[nodiscard]] Merge find(std::uint64_t pair) const {
    const std::size_t mask = entries_.size() - 1;
    std::size_t at = first_place(pair);
    while (entries_[at].pair != kFree && entries_[at].pair != pair) at = (at + 1) & mask;
    return entries_[at].merge;
  }
  [[nodiscard]] static std::uint64_t pair(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
  }

 private:
  struct Entry {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  [[nodiscard]] std::size_t first_place(std::uint64_t pair) const {
    return mixed(mixed(pair)) & (entries_.size() - 1);
  }

  std::vector<Entry> entries_;
};

/// The characters of a vocabulary, and which of them a merge can join: the last of its left side
/// with the first of its right side.
class CharacterTable {
 public:
  /// Makes room for the pairs of `merges` merges.
  void reserve(std::size_t merges) { joined_.reserve(merges); }
  /// Adds a character that is a token.
  void add(char32_t character);
  void join(char32_t left, char32_t right);
  /// Whether a word can be cut between two characters: both are tokens, and no merge joins them.
  [[nodiscard]] bool cuts(char32_t left, char32_t right) const {
    return !joins(left, right) && known(left) && known(right);
  }

 private:
  static constexpr char32_t kAscii = 128;

  [[nodiscard]] static std::uint64_t pair(char32_t left, char32_t right) {
    return PairTable::pair(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right));
  }
  [[nodiscard]] bool known(char32_t character) const {
    return character < known_.size() && known_[character];
  }
  [[nodiscard]] bool joins(char32_t left, char32_t right) const {
    if (left < kAscii && right < kAscii) return ascii_joined_[left][right];
    return joined_.find(pair(left, right)).rank != Merge::kNone;
  }

  std::vector<bool> known_;  ///< by number
  std::array<std::bitset<kAscii>, kAscii> ascii_joined_;
  PairTable joined_;
};

}  // namespace orrery

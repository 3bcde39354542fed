// tokens/bpe/merge_tables.hpp - the hash tables of byte-pair merging: words to tokens, pairs of
// tokens to their merge, and which characters a merge can join.
//
// Built while a tokenizer is loaded, then immutable: safe from every thread. Cost: open addressing
// at half load, so a look-up is one or two cache lines.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

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
  [[nodiscard]] const Entry* find(std::string_view word) const;
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
  [[nodiscard]] Merge find(std::uint64_t pair) const;
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

  [[nodiscard]] std::size_t place_of(std::uint64_t pair) const;

  std::vector<Entry> entries_;
};

}  // namespace orrery

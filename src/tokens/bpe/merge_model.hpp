// tokens/bpe/merge_model.hpp - the model of a tokenizer.json: a vocabulary and the merges that make
// its tokens (R. Sennrich et al., "Neural machine translation of rare words with subword units",
// 2016).
//
// Made while a tokenizer is loaded; immutable but for a cache that changes no result, safe from
// every thread. Invariant: a word becomes the tokens that merging its lowest ranked pair, the first
// of equals, again and again gives. Cost: a hash look-up for a word that was encoded lately, two
// for one that is a token; else O(n log n) look-ups for its n characters, or n^2 steps of a short
// word's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_tables.hpp"
#include "tokens/bpe/word_cache.hpp"

namespace orrery {

/// What the characters of a vocabulary stand for.
enum class VocabularyText : std::uint8_t {
  kCharacters,  ///< themselves
  kBytes        ///< bytes (byte_alphabet.hpp); words are given as bytes
};

class MergeModel {
 public:
  /// Reads the object "model". Throws LoadFault.
  MergeModel(const JsonPart& model, VocabularyText text);

  /// Appends the tokens of a word, which no merge spans. Characters without a token become those
  /// of their bytes or the unknown token, or are left out if there is none.
  void encode(std::string_view word, std::vector<std::int32_t>& to) const;

  /// Number of entries of the vocabulary.
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  [[nodiscard]] std::optional<std::int32_t> token(std::string_view text) const;
  /// Texts by token as the file has them; "" where numbers have no token.
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }
  [[nodiscard]] bool has(std::int32_t token) const {
    return token >= 0 && static_cast<std::size_t>(token) < known_.size() &&
           known_[static_cast<std::size_t>(token)];
  }

 private:
  /// What a character becomes before merging.
  struct Start {
    std::vector<std::int32_t> tokens;  ///< its token, those of its bytes, or none
    bool known = false;                ///< it has a token of its own
  };
  struct Unknown {
    std::optional<std::int32_t> token;
    bool fused = false;
  };
  struct ByteStarts {
    std::vector<Start> starts;               ///< by byte
    std::array<std::int32_t, 256> tokens{};  ///< by byte, if all are known
    bool all_known = false;
  };

  void read_vocabulary(const JsonPart& model);
  void read_merges(const JsonPart& model);
  void read_bytes();
  void index_words();
  [[nodiscard]] Start start_of(std::string_view character) const;
  /// Appends the tokens of characters before merging.
  void start(std::string_view word, std::vector<std::int32_t>& to) const;
  /// Encodes a part of a word that no merge leaves, from the cache if it is there.
  void encode_part(std::string_view part, std::vector<std::int32_t>& to) const;
  void encode_anew(std::string_view part, std::uint64_t hash, std::vector<std::int32_t>& to) const;
  /// Returns where a word can be cut first behind `from`: no merge joins the characters there.
  [[nodiscard]] std::size_t next_cut(std::string_view word, std::size_t from) const;

  VocabularyText text_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::string> texts_;
  std::vector<bool> known_;
  WordTable words_;
  PairTable merges_;
  CharacterTable characters_;
  ByteStarts bytes_;
  Unknown unknown_;
  bool byte_fallback_ = false;
  bool whole_words_ = false;  ///< a word that is a token is not merged
  WordCache cache_{0};
};

/// Merges neighbours in `tokens` from `begin` on, lowest rank first, the first of equals.
void merge_tokens(const PairTable& merges, std::size_t begin, std::vector<std::int32_t>& tokens);

}  // namespace orrery

// tokens/bpe/added_tokens.hpp - the tokens that stand outside of the model, such as "<|im_end|>":
// found in a text before it is divided into words.
//
// Made while a tokenizer is loaded; immutable, safe from every thread. Invariant: tokens are found
// from left to right, the longest first, and those that are not normalized before the others. Cost:
// a step of a trie for each character that may begin a token.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_model.hpp"
#include "tokens/bpe/text_normalizer.hpp"
#include "tokens/text/text_pattern.hpp"

namespace orrery {

struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  std::string matched;  ///< content after the normalizer, if the token is normalized
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;
  bool special = false;
};

/// A part of a text: an added token, or text between them.
struct TextPart {
  TextSpan span;
  std::optional<std::int32_t> token;
};

/// The longest of many texts at a place of another.
class TokenTrie {
 public:
  void add(std::string_view text, std::int32_t value);
  struct Match {
    std::size_t size = 0;  ///< 0: none
    std::int32_t value = 0;
  };
  [[nodiscard]] Match longest_at(std::string_view text, std::size_t at) const;
  /// The first place from `at` on where a text may begin; the end if there is none.
  [[nodiscard]] std::size_t next_begin(std::string_view text, std::size_t at) const;

 private:
  struct Node {
    std::vector<std::pair<char, std::uint32_t>> next;
    std::int32_t value = -1;
  };

  std::array<bool, 256> begins_{};
  std::string first_bytes_;  ///< those that begin a text
  std::vector<Node> nodes_;
};

class AddedTokens {
 public:
  /// Reads "added_tokens". A token that the model has keeps its number; the others are numbered
  /// behind the vocabulary in their order, whatever number the file gives. Throws LoadFault.
  AddedTokens(const JsonPart& file, const MergeModel& model, const TextNormalizer& normalizer);

  enum class Stage : std::uint8_t { kBeforeNormalizer, kAfterNormalizer };
  /// Whether special tokens in a text are found, or are text like any other.
  enum class Special : std::uint8_t { kFound, kText };
  struct Search {
    Stage stage = Stage::kBeforeNormalizer;
    Special special = Special::kFound;
  };
  /// Divides a text; parts that are empty are left out.
  [[nodiscard]] std::vector<TextPart> find(std::string_view text, Search search) const;

  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }
  [[nodiscard]] const AddedToken* by_id(std::int32_t id) const;
  [[nodiscard]] std::optional<std::int32_t> token(std::string_view content) const;
  /// Whether a text is the content of a special token.
  [[nodiscard]] bool is_special(std::string_view content) const {
    return special_.contains(std::string(content));
  }

 private:
  void add(AddedToken token, const MergeModel& model, std::int32_t& next);
  [[nodiscard]] bool stands_alone(std::string_view text, TextSpan span) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  std::unordered_map<std::string, std::int32_t> by_content_;
  std::unordered_set<std::string> special_;
  TokenTrie raw_;
  TokenTrie normalized_;
  std::optional<TextPattern> word_character_;
};

}  // namespace orrery

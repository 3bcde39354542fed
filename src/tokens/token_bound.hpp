// tokens/token_bound.hpp - how many tokens of a tokenizer.json a text has at least, by its bytes.
//
// Made while a tokenizer is loaded, O(vocabulary); immutable, safe from every thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "tokens/bpe/added_tokens.hpp"
#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_model.hpp"

namespace orrery {

class TokenBound {
 public:
  /// Nothing where a text can lose any number of bytes: a pre-tokenizer that removes matches, a
  /// replacement by less (by a regular expression, or by nothing), tokens that take the spaces
  /// around them, characters without a token. Precondition: `file` was accepted by the readers of
  /// its parts.
  [[nodiscard]] static std::optional<TokenBound> of(const JsonPart& file, const MergeModel& model,
                                                    VocabularyText words, const AddedTokens& added);

  /// Returns a number of tokens that UTF-8 text has at least. O(bytes).
  [[nodiscard]] std::size_t least(std::string_view text) const;

 private:
  std::size_t longest_ = 0;            ///< bytes of a text that a token can stand for
  std::array<bool, 256> has_token_{};  ///< by byte; the others are left out
};

}  // namespace orrery

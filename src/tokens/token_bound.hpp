// tokens/token_bound.hpp - how much text a token of a tokenizer.json can stand for.
//
// Computed while a tokenizer is loaded. Pure. Cost: O(vocabulary).
#pragma once

#include <cstddef>
#include <optional>

#include "tokens/bpe/added_tokens.hpp"
#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_model.hpp"

namespace orrery {

/// Returns a number of bytes of which no text has more for each of its tokens; nothing where a text
/// can lose any number of bytes: a pre-tokenizer that removes matches, a replacement by less (by a
/// regular expression, or by nothing), tokens that take the spaces around them, characters without
/// a token. Precondition: `file` was accepted by the readers of its parts.
[[nodiscard]] std::optional<std::size_t> bytes_of_a_token(const JsonPart& file,
                                                          const MergeModel& model,
                                                          VocabularyText words,
                                                          const AddedTokens& added);

}  // namespace orrery

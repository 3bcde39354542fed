// inference/gguf/gguf_tokenizer.hpp - the tokenizer of a GGUF file, as the tokenizer.json that
// Hugging Face's library has for the same model.
//
// Pure functions, called while a model is loaded. Known are "gpt2" (merges, with a named pattern of
// words) and "llama" (SentencePiece's scores, of which merges follow: the pair whose token has the
// highest score goes first). Cost: a few passes over the vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "inference/engine/served_model.hpp"
#include "inference/gguf/gguf_fields.hpp"
#include "tokens/bpe_tokenizer.hpp"

namespace orrery {

/// What a file says of its tokens.
struct GgufText {
  BpeTokenizer tokenizer;
  std::vector<std::int32_t> ends;
  std::optional<ModelChat> chat;
};
/// Errors name the key: an unknown model or pattern, a token that is no UTF-8 or comes twice,
/// arrays of different sizes, a chat template that cannot be read.
[[nodiscard]] Result<GgufText> read_gguf_text(GgufFields& fields);

}  // namespace orrery

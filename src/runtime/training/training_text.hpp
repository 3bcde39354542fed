// runtime/training/training_text.hpp - the text that a rank trains on, in the tokens of its spec.
//
// Opened by each rank at its start; see text_corpus, token_cache and text_stream. The text is in
// the node's memory before the first step: bytes are mapped and read once when they are opened,
// other tokens are checked when they are opened, so no step waits for a disk unless the node has
// too little memory to keep them.
#pragma once

#include <string>

#include "runtime/text/text_stream.hpp"
#include "runtime/text/token_cache.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct TrainingText {
  TextStream stream;
  std::string summary;  ///< readable: number of files, and kind of tokens
};

/// Checks that the model of the spec has a row for each token. The error names both numbers.
[[nodiscard]] Status check_vocabulary(const TrainingSpec& spec, const Tokenizer& tokenizer);

/// Checks that the newest checkpoint, if there is one, was made with the same tokens, which the
/// weights do not show. The error names both.
[[nodiscard]] Status check_tokens_saved(const TrainingSpec& spec, const Tokenizer& tokenizer);

/// Opens the files and directories of the spec as a stream; tokens other than bytes are kept in
/// `cache` (tokenize()). Errors: those of TextCorpus::open() and TextStream::create().
[[nodiscard]] Result<TrainingText> open_training_text(const TrainingSpec& spec,
                                                      const Tokenizer& tokenizer,
                                                      const std::string& cache);

}  // namespace orrery

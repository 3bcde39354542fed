// runtime/training/training_text.hpp - the text that a rank trains on, in the tokens of its spec.
//
// Opened by each rank at its start; see text_corpus, token_cache and text_stream. What is read in a
// step lies in the node's memory by then: bytes are mapped and read once when they are opened,
// other tokens are checked when they are, so no step waits for a disk unless the node has too
// little memory to keep them.
#pragma once

#include <string>

#include "runtime/trainer/text_stream.hpp"
#include "runtime/trainer/token_cache.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct TrainingText {
  TextStream stream;
  std::string summary;  ///< for people: how many files, and tokens of what
};

/// The model of the spec has a row for each token. Error: names both numbers.
[[nodiscard]] Status check_vocabulary(const TrainingSpec& spec, const Tokenizer& tokenizer);

/// The newest checkpoint, if there is any, was made with the same tokens: weights alone do not
/// tell. Error: names both.
[[nodiscard]] Status check_tokens_saved(const TrainingSpec& spec, const Tokenizer& tokenizer);

/// Files and directories of the spec as a stream; tokens that are no bytes are kept in `cache`
/// (tokenize()). Errors: as of TextCorpus::open() and TextStream::create().
[[nodiscard]] Result<TrainingText> open_training_text(const TrainingSpec& spec,
                                                      const Tokenizer& tokenizer,
                                                      const std::string& cache);

}  // namespace orrery

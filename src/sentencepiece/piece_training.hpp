// sentencepiece/piece_training.hpp - a SentencePiece model made from a text: byte-pair merges (R.
// Sennrich et al., "Neural machine translation of rare words with subword units", 2016).
//
// The result depends only on the text and the size: it has the same bytes in every run. Cost: about
// a second per megabyte of text, and 15 bytes of memory per byte; of a text longer than kTrainedMax
// every n-th line is used.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "runtime/text/text_corpus.hpp"

namespace orrery {

inline constexpr std::int64_t kTrainedMax = std::int64_t{1} << 26;  ///< bytes

/// Returns the bytes of a model of exactly `kinds` tokens: 256 bytes, three that stand for no text
/// (<unk>, <s>, </s>) and pieces, none of which spans a line end. The text is not changed: no
/// normalisation, no space in front. Errors: an impossible number of tokens (input); a text with
/// too few different pieces, or too many characters, for this number (infeasible). Precondition:
/// tokens of `text` are bytes.
[[nodiscard]] Result<std::string> train_pieces(const TextCorpus& text, std::int64_t kinds);

}  // namespace orrery

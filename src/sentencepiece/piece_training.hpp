// sentencepiece/piece_training.hpp - a SentencePiece model made from a text: byte-pair merges (R.
// Sennrich et al., "Neural machine translation of rare words with subword units", 2016).
//
// A function of the text and the size alone: the same bytes on every run. Cost: about a second each
// megabyte of text, and 15 bytes of memory a byte; of a longer text than kTrainedMax every so
// manieth line is taken.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "runtime/trainer/text_corpus.hpp"

namespace orrery {

inline constexpr std::int64_t kTrainedMax = std::int64_t{1} << 26;  ///< bytes

/// The bytes of a model of just `kinds` tokens: 256 of bytes, three that stand for no text (<unk>,
/// <s>, </s>) and pieces, none of which spans a line end. The text is taken as it stands: no
/// normalisation, no space in front. Errors: a number of tokens that no text gives (input), a text
/// that has too few different pieces, or too many characters, for so many (infeasible).
/// Precondition: tokens of `text` are bytes.
[[nodiscard]] Result<std::string> train_pieces(const TextCorpus& text, std::int64_t kinds);

}  // namespace orrery

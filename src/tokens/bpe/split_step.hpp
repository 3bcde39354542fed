// tokens/bpe/split_step.hpp - steps of a pre-tokenizer that divide pieces at matches of a pattern.
//
// Made while a tokenizer is loaded; immutable, safe from every thread. Cost: the pattern's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokens/bpe/pre_tokenizer.hpp"
#include "tokens/text/text_pattern.hpp"
#include "tokens/text/word_splitter.hpp"

namespace orrery {

/// What becomes of a match.
enum class SplitBehavior : std::uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

/// A stretch of a text; stretches cover it without gaps.
struct Stretch {
  TextSpan span;
  bool matches = false;
};

/// Fills the gaps between matches.
[[nodiscard]] std::vector<Stretch> stretches_of(std::size_t size,
                                                const std::vector<TextSpan>& matches);
/// Divides a text that stretches cover.
[[nodiscard]] std::vector<TextSpan> divide(const std::vector<Stretch>& stretches,
                                           SplitBehavior behavior);
/// Appends the parts of a piece that are not empty.
void append_parts(const TextPiece& piece, const std::vector<TextSpan>& parts,
                  std::vector<TextPiece>& to);

/// Divides pieces into the words of a splitter.
[[nodiscard]] std::unique_ptr<const PreTokenizerStep> make_word_step(WordSplitter splitter);
/// Reads a step of type "Split". Throws LoadFault.
[[nodiscard]] std::unique_ptr<const PreTokenizerStep> make_split_step(const JsonPart& part);
/// Divides pieces at characters of Unicode's category N, each for itself or in runs.
[[nodiscard]] std::unique_ptr<const PreTokenizerStep> make_digit_step(SplitBehavior behavior);

}  // namespace orrery

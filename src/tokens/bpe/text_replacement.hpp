// tokens/bpe/text_replacement.hpp - replaces what a "pattern" of a tokenizer.json matches.
//
// Made while a tokenizer is loaded; movable, immutable, safe from every thread. Cost: O(n), or the
// regular expression's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/bpe/json_part.hpp"
#include "tokens/text/text_pattern.hpp"

namespace orrery {

/// A literal text or a regular expression: {"String": ...} or {"Regex": ...}.
class MatchPattern {
 public:
  /// Reads the field "pattern". Throws LoadFault; an empty text is refused.
  explicit MatchPattern(const JsonPart& owner);
  [[nodiscard]] std::vector<TextSpan> find_all(std::string_view text) const;

 private:
  std::string literal_;
  std::optional<TextPattern> regex_;
};

class TextReplacement {
 public:
  /// Reads the fields "pattern" and "content". Throws LoadFault.
  explicit TextReplacement(const JsonPart& owner);
  /// Returns the result: `text` itself if nothing matches, else `buffer`, which is then written.
  [[nodiscard]] std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  MatchPattern pattern_;
  std::string content_;
};

/// Returns the matches of a literal text, which is not empty, from left to right.
[[nodiscard]] std::vector<TextSpan> find_literal(std::string_view text, std::string_view literal);

}  // namespace orrery

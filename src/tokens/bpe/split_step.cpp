#include "tokens/bpe/split_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/utf8.hpp"
#include "tokens/bpe/text_replacement.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

SplitBehavior read_behavior(const JsonPart& part) {
  const std::string name = part.text("behavior");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  part.part("behavior")
      .refuse(fmt::format("\"{}\" is not known, expected Removed, Isolated, MergedWithPrevious, "
                          "MergedWithNext or Contiguous",
                          printable(name, 60)));
}

/// Adds each match to the stretch before it, unless that is a match too.
std::vector<TextSpan> merged_with_previous(const std::vector<Stretch>& stretches) {
  std::vector<TextSpan> parts;
  bool matched = false;
  for (const Stretch& each : stretches) {
    if (each.matches && !matched && !parts.empty()) {
      parts.back().end = each.span.end;
    } else {
      parts.push_back(each.span);
    }
    matched = each.matches;
  }
  return parts;
}

std::vector<TextSpan> merged_with_next(const std::vector<Stretch>& stretches) {
  std::vector<TextSpan> parts;
  bool matched = false;
  for (auto each = stretches.rbegin(); each != stretches.rend(); ++each) {
    if (each->matches && !matched && !parts.empty()) {
      parts.back().begin = each->span.begin;
    } else {
      parts.push_back(each->span);
    }
    matched = each->matches;
  }
  std::ranges::reverse(parts);
  return parts;
}

std::vector<TextSpan> contiguous(const std::vector<Stretch>& stretches) {
  std::vector<TextSpan> parts;
  bool matched = false;
  for (const Stretch& each : stretches) {
    if (each.matches == matched && !parts.empty()) {
      parts.back().end = each.span.end;
    } else {
      parts.push_back(each.span);
    }
    matched = each.matches;
  }
  return parts;
}

class WordStep final : public PreTokenizerStep {
 public:
  explicit WordStep(WordSplitter splitter) : splitter_(splitter) {}

  void apply(TextPieces& text) const override {
    std::vector<TextPiece> words;
    std::size_t bytes = 0;
    for (const TextPiece& piece : text.pieces) bytes += piece.text.size();
    words.reserve(text.pieces.size() + bytes / 4);
    for (const TextPiece& piece : text.pieces) {
      for (std::size_t at = 0; at < piece.text.size();) {
        const std::size_t end = splitter_.word_end(piece.text, at);
        words.push_back({piece.text.substr(at, end - at), piece.opens && at == 0});
        at = end;
      }
    }
    text.pieces = std::move(words);
  }
  const WordSplitter* splitter() const override { return &splitter_; }

 private:
  WordSplitter splitter_;
};

class SplitStep final : public PreTokenizerStep {
 public:
  explicit SplitStep(const JsonPart& part)
      : pattern_(part), behavior_(read_behavior(part)), invert_(part.flag("invert")) {}

  void apply(TextPieces& text) const override {
    std::vector<TextPiece> parts;
    for (const TextPiece& piece : text.pieces) {
      std::vector<Stretch> stretches =
          stretches_of(piece.text.size(), pattern_.find_all(piece.text));
      if (invert_) {
        for (Stretch& each : stretches) each.matches = !each.matches;
      }
      append_parts(piece, divide(stretches, behavior_), parts);
    }
    text.pieces = std::move(parts);
  }

 private:
  MatchPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

/// Characters of category N; the reference counts some here that it does not count in patterns.
bool is_digit(char32_t value) {
  return (UnicodeClasses::table().of(value) & kNumber) != 0 ||
         (value >= 0x11DE0 && value <= 0x11DE9) || (value >= 0x16FF4 && value <= 0x16FF6);
}

class DigitStep final : public PreTokenizerStep {
 public:
  explicit DigitStep(SplitBehavior behavior) : behavior_(behavior) {}

  void apply(TextPieces& text) const override {
    std::vector<TextPiece> parts;
    for (const TextPiece& piece : text.pieces) {
      std::vector<TextSpan> digits;
      for (std::size_t at = 0; at < piece.text.size();) {
        const CodePoint point = code_point_at(piece.text, at);
        if (is_digit(point.value)) digits.push_back({at, at + point.size});
        at += point.size;
      }
      append_parts(piece, divide(stretches_of(piece.text.size(), digits), behavior_), parts);
    }
    text.pieces = std::move(parts);
  }

 private:
  SplitBehavior behavior_;
};

/// The code of a pattern that divides a text into its matches and what is between, if there is any.
std::optional<WordSplitter> known_words(const JsonPart& part) {
  const JsonPart pattern = part.part("pattern");
  const SplitBehavior behavior = read_behavior(part);
  const bool matches_stay = behavior == SplitBehavior::kRemoved && part.flag("invert");
  const bool all_stay = behavior == SplitBehavior::kIsolated;
  if ((!matches_stay && !all_stay) || !pattern.has("Regex")) return std::nullopt;
  const auto words = WordSplitter::of_pattern(pattern.text("Regex"));
  return words && (all_stay || words->covers()) ? words : std::nullopt;
}

}  // namespace

std::vector<Stretch> stretches_of(std::size_t size, const std::vector<TextSpan>& matches) {
  std::vector<Stretch> stretches;
  std::size_t done = 0;
  for (const TextSpan match : matches) {
    if (done != match.begin) stretches.push_back({{done, match.begin}, false});
    stretches.push_back({match, true});
    done = match.end;
  }
  if (done != size) stretches.push_back({{done, size}, false});
  return stretches;
}

std::vector<TextSpan> divide(const std::vector<Stretch>& stretches, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return merged_with_previous(stretches);
    case SplitBehavior::kMergedWithNext:
      return merged_with_next(stretches);
    case SplitBehavior::kContiguous:
      return contiguous(stretches);
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      break;
  }
  std::vector<TextSpan> parts;
  for (const Stretch& each : stretches) {
    if (!each.matches || behavior == SplitBehavior::kIsolated) parts.push_back(each.span);
  }
  return parts;
}

void append_parts(const TextPiece& piece, const std::vector<TextSpan>& parts,
                  std::vector<TextPiece>& to) {
  for (const TextSpan part : parts) {
    if (part.begin >= part.end) continue;
    to.push_back(
        {piece.text.substr(part.begin, part.end - part.begin), piece.opens && part.begin == 0});
  }
}

std::unique_ptr<const PreTokenizerStep> make_word_step(WordSplitter splitter) {
  return std::make_unique<WordStep>(splitter);
}

std::unique_ptr<const PreTokenizerStep> make_split_step(const JsonPart& part) {
  if (const auto words = known_words(part)) return make_word_step(*words);
  return std::make_unique<SplitStep>(part);
}

std::unique_ptr<const PreTokenizerStep> make_digit_step(SplitBehavior behavior) {
  return std::make_unique<DigitStep>(behavior);
}

}  // namespace orrery

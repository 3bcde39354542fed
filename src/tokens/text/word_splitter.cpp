#include "tokens/text/word_splitter.hpp"

#include <algorithm>
#include <array>

#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kMarksPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The characters of a text from a place on, with their classes.
class Reader {
 public:
  Reader(std::string_view text, std::size_t at)
      : text_(text), at_(at), classes_(UnicodeClasses::table()) {
    look();
  }
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  [[nodiscard]] bool is(std::uint8_t bits) const { return !ended() && (bits_ & bits) != 0; }
  [[nodiscard]] bool is_not(std::uint8_t bits) const { return !ended() && (bits_ & bits) == 0; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void step() {
    at_ += size_;
    look();
  }
  void skip(std::uint8_t bits) {
    while (is(bits)) step();
  }
  void skip_but(std::uint8_t bits) {
    while (is_not(bits)) step();
  }

 private:
  void look() {
    if (ended()) return;
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 128) {
      size_ = 1;
      bits_ = classes_.of(byte);
      return;
    }
    const CodePoint point = code_point_at(text_, at_);
    size_ = point.size;
    bits_ = classes_.of(point.value);
  }

  std::string_view text_;
  std::size_t at_;
  const UnicodeClasses& classes_;
  std::size_t size_ = 0;
  std::uint8_t bits_ = 0;
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Bytes of "'s", "'t", "'re", "'ve", "'m", "'ll" or "'d" at the apostrophe `at`; 0 if there is
/// none.
std::size_t contraction(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return 0;
  const char first = text[at + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (at + 2 >= text.size()) return 0;
  const char second = text[at + 2];
  const bool found =
      ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return found ? 3 : 0;
}

/// As `contraction`, in any case; the long s (U+017F) is an s.
std::size_t contraction_in_any_case(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at, 3);
  if (rest.size() == 3 && rest[1] == '\xc5' && rest[2] == '\xbf') return 3;
  std::array<char, 3> folded{};
  std::ranges::transform(rest, folded.begin(), lower);
  return contraction(std::string_view(folded.data(), rest.size()), 0);
}

/// The end of a run of spaces: the last of several is left to the word behind them.
std::size_t spaces_end(std::string_view text, std::size_t at) {
  Reader reader(text, at);
  std::size_t last = at;
  while (reader.is(kSpace)) {
    last = reader.at();
    reader.step();
  }
  return reader.ended() || last == at ? reader.at() : last;
}

std::size_t gpt2_end(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t size = contraction(text, at); size > 0) return at + size;
  }
  Reader reader(text, at);
  if (text[at] == ' ') reader.step();
  if (reader.is(kLetter)) {
    reader.skip(kLetter);
  } else if (reader.is(kNumber)) {
    reader.skip(kNumber);
  } else if (reader.is_not(kSpace)) {
    reader.skip_but(kSpace | kLetter | kNumber);
  } else {
    return spaces_end(text, at);
  }
  return reader.at();
}

}  // namespace

std::optional<WordSplitter> WordSplitter::of_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return gpt2();
  if (pattern == kLlama3Pattern) return WordSplitter(Family::kCl100k, kLetter, 3);
  if (pattern == kQwen2Pattern) return WordSplitter(Family::kCl100k, kLetter, 1);
  if (pattern == kMarksPattern) return WordSplitter(Family::kCl100k, kLetter | kMark, 1);
  return std::nullopt;
}

WordSplitter WordSplitter::gpt2() { return {Family::kGpt2, kLetter, 0}; }

std::size_t WordSplitter::word_end(std::string_view text, std::size_t at) const {
  return family_ == Family::kGpt2 ? gpt2_end(text, at) : cl100k_end(text, at);
}

std::size_t WordSplitter::cl100k_end(std::string_view text, std::size_t at) const {
  if (text[at] == '\'') {
    if (const std::size_t size = contraction_in_any_case(text, at); size > 0) return at + size;
  }
  Reader reader(text, at);
  if (reader.is(kNumber)) {
    for (std::size_t digits = 0; digits < digits_ && reader.is(kNumber); ++digits) reader.step();
    return reader.at();
  }
  const bool may_lead = reader.is_not(kLineEnd | kLetter | kNumber);
  Reader word = reader;
  if (may_lead) word.step();
  if (!may_lead || word.is(word_)) {
    if (word.is(word_)) {
      word.skip(word_);
      return word.at();
    }
  } else if (reader.is(word_)) {
    return word.at();
  }
  Reader sign = reader;
  if (text[at] == ' ') sign.step();
  const auto no_sign = static_cast<std::uint8_t>(kSpace | kNumber | word_);
  if (sign.is_not(no_sign)) {
    sign.skip_but(no_sign);
    sign.skip(kLineEnd);
    return sign.at();
  }
  std::size_t line_end = 0;
  for (Reader space = reader; space.is(kSpace);) {
    const bool ends = space.is(kLineEnd);
    space.step();
    if (ends) line_end = space.at();
  }
  return line_end > 0 ? line_end : spaces_end(text, at);
}

}  // namespace orrery

#include "tokens/text/word_splitter.hpp"

#include <algorithm>
#include <array>
#include <string>

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
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseekPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kNumbersPattern = R"(\p{N}{1,3})";
constexpr std::string_view kHanAndKanaPattern = "[一-龥\u3040-ゟ゠-ヿ]+";

/// Writes line ends as escapes and quotes as themselves: files differ in these.
std::string in_one_spelling(std::string_view pattern) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\r') {
      text += "\\r";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\\' && i + 1 < pattern.size()) {
      ++i;
      if (pattern[i] != '"') text += c;
      text += pattern[i];
    } else {
      text += c;
    }
  }
  return text;
}

/// The characters of a text from a place on, with their classes.
class Reader {
 public:
  Reader(std::string_view text, std::size_t at, const UnicodeClasses& classes)
      : text_(text), at_(at), classes_(classes) {
    look();
  }
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  [[nodiscard]] bool is(std::uint8_t bits) const { return !ended() && (bits_ & bits) != 0; }
  [[nodiscard]] bool is_not(std::uint8_t bits) const { return !ended() && (bits_ & bits) == 0; }
  [[nodiscard]] bool is_slash() const { return !ended() && text_[at_] == '/'; }
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

/// The end of a contraction at `at`, in any case; `at` if there is none.
std::size_t contraction_end(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '\'') return at;
  return at + contraction_in_any_case(text, at);
}

/// The end of a run of spaces: the last of several is left to the word behind them.
std::size_t spaces_end(Reader reader) {
  const std::size_t begin = reader.at();
  std::size_t last = begin;
  while (reader.is(kSpace)) {
    last = reader.at();
    reader.step();
  }
  return reader.ended() || last == begin ? reader.at() : last;
}

/// The end of a run of spaces: behind its last line end, or as `spaces_end`.
std::size_t blank_end(const Reader& begin) {
  std::size_t line_end = 0;
  for (Reader space = begin; space.is(kSpace);) {
    const bool ends = space.is(kLineEnd);
    space.step();
    if (ends) line_end = space.at();
  }
  return line_end > 0 ? line_end : spaces_end(begin);
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 128; }

bool is_ascii_letter(char c) {
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z';
}

/// The end of a run of ASCII letters at `at`; 0 if there is none, or if a character stands behind
/// it that is not ASCII and may belong to it. Most words are such runs.
std::size_t letters_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_ascii_letter(text[end])) ++end;
  return end > at && (end == text.size() || is_ascii(text[end])) ? end : 0;
}

bool is_han_or_kana(char32_t value) {
  return (value >= 0x4E00 && value <= 0x9FA5) || (value >= 0x3040 && value <= 0x30FF);
}

/// The end of a run of Han characters and kana, or of other characters.
std::size_t han_and_kana_end(std::string_view text, std::size_t at) {
  const bool found = is_han_or_kana(code_point_at(text, at).value);
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (is_han_or_kana(point.value) != found) break;
    at += point.size;
    if (!found) at = ascii_end(text, at);
  }
  return at;
}

/// A run of letters and marks that o200k divides by case: capitals, then small letters; letters
/// without case and marks count to both.
struct CasedRun {
  std::size_t small_end = 0;    ///< the end of the longest part that ends in a character that is no
                                ///< capital, 0 if there is none
  std::size_t capital_end = 0;  ///< the end of the capitals
};

CasedRun cased_run(Reader reader) {
  CasedRun run;
  while (reader.is(kLetter | kMark) && !reader.is(kLower)) {
    const bool capital = reader.is(kUpper);
    reader.step();
    if (!capital) run.small_end = reader.at();
  }
  run.capital_end = reader.at();
  if (!reader.is(kLower)) return run;
  while (reader.is(kLetter | kMark) && !reader.is(kUpper)) reader.step();
  run.small_end = reader.at();
  return run;
}

}  // namespace

std::optional<WordSplitter> WordSplitter::of_pattern(std::string_view written) {
  const std::string pattern = in_one_spelling(written);
  if (pattern == kGpt2Pattern) return gpt2();
  if (pattern == kLlama3Pattern) return WordSplitter(Family::kCl100k, kLetter, 3);
  if (pattern == kQwen2Pattern) return WordSplitter(Family::kCl100k, kLetter, 1);
  if (pattern == kMarksPattern) return WordSplitter(Family::kCl100k, kLetter | kMark, 1);
  if (pattern == kO200kPattern) return WordSplitter(Family::kO200k, kLetter, 3);
  if (pattern == kDeepseekPattern) return WordSplitter(Family::kDeepseek, kLetter | kMark, 0);
  if (pattern == kNumbersPattern) return WordSplitter(Family::kNumbers, kLetter, 3);
  if (pattern == kHanAndKanaPattern) return WordSplitter(Family::kHanAndKana, kLetter, 0);
  return std::nullopt;
}

WordSplitter WordSplitter::gpt2() { return {Family::kGpt2, kLetter, 0}; }

std::size_t WordSplitter::word_end(std::string_view text, std::size_t at) const {
  switch (family_) {
    case Family::kGpt2:
      return gpt2_end(text, at);
    case Family::kCl100k:
      return cl100k_end(text, at);
    case Family::kO200k:
      return o200k_end(text, at);
    case Family::kDeepseek:
      return deepseek_end(text, at);
    case Family::kNumbers:
      return numbers_end(text, at);
    case Family::kHanAndKana:
      break;
  }
  return han_and_kana_end(text, at);
}

std::size_t WordSplitter::gpt2_end(std::string_view text, std::size_t at) const {
  if (text[at] == '\'') {
    if (const std::size_t size = contraction(text, at); size > 0) return at + size;
  }
  const bool leads = text[at] == ' ';
  if (const std::size_t end = letters_end(text, leads ? at + 1 : at); end > 0) return end;
  Reader reader(text, at, *classes_);
  const Reader begin = reader;
  if (leads) reader.step();
  if (reader.is(kLetter)) {
    reader.skip(kLetter);
  } else if (reader.is(kNumber)) {
    reader.skip(kNumber);
  } else if (reader.is_not(kSpace)) {
    reader.skip_but(kSpace | kLetter | kNumber);
  } else {
    return spaces_end(begin);
  }
  return reader.at();
}

std::size_t WordSplitter::cl100k_end(std::string_view text, std::size_t at) const {
  if (const std::size_t end = contraction_end(text, at); end > at) return end;
  constexpr std::uint8_t kNoLead = kLineEnd | kLetter | kNumber;
  const bool ascii_leads =
      is_ascii(text[at]) && (classes_->of(static_cast<unsigned char>(text[at])) & kNoLead) == 0;
  if (const std::size_t end = letters_end(text, ascii_leads ? at + 1 : at); end > 0) return end;
  Reader reader(text, at, *classes_);
  if (reader.is(kNumber)) {
    for (std::size_t digits = 0; digits < digits_ && reader.is(kNumber); ++digits) reader.step();
    return reader.at();
  }
  const bool may_lead = reader.is_not(kNoLead);
  Reader word = reader;
  if (may_lead) word.step();
  if (word.is(word_)) {
    word.skip(word_);
    return word.at();
  }
  return may_lead && reader.is(word_) ? word.at() : rest_end(text, at);
}

// A lead is no letter, so a word without the lead that is there begins with a mark.
std::size_t WordSplitter::o200k_end(std::string_view text, std::size_t at) const {
  const Reader reader(text, at, *classes_);
  if (reader.is(kNumber)) {
    Reader number = reader;
    for (std::size_t digits = 0; digits < digits_ && number.is(kNumber); ++digits) number.step();
    return number.at();
  }
  Reader word = reader;
  if (reader.is_not(kLineEnd | kLetter)) word.step();
  const CasedRun run = cased_run(word);
  std::size_t end = run.small_end;
  if (end == 0 && reader.is(kMark)) end = cased_run(reader).small_end;
  if (end == 0 && run.capital_end > word.at()) end = run.capital_end;
  return end > 0 ? contraction_end(text, end) : rest_end(text, at);
}

std::size_t WordSplitter::rest_end(std::string_view text, std::size_t at) const {
  const Reader reader(text, at, *classes_);
  Reader sign = reader;
  if (text[at] == ' ') sign.step();
  const auto no_sign = static_cast<std::uint8_t>(kSpace | kNumber | word_);
  if (sign.is_not(no_sign)) {
    sign.skip_but(no_sign);
    while (sign.is(kLineEnd) || (family_ == Family::kO200k && sign.is_slash())) sign.step();
    return sign.at();
  }
  return blank_end(reader);
}

std::size_t WordSplitter::deepseek_match(std::string_view text, std::size_t at) const {
  const Reader reader(text, at, *classes_);
  const bool ascii_sign = is_ascii(text[at]) && reader.is(kSign);
  if (ascii_sign) {
    std::size_t end = at + 1;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    if (end > at + 1) return end;
  }
  const bool may_lead = reader.is_not(kLineEnd | kLetter | kSign);
  Reader word = reader;
  if (may_lead) word.step();
  if (word.is(kLetter | kMark)) {
    word.skip(kLetter | kMark);
    return word.at();
  }
  if (reader.is(kMark)) return word.at();
  Reader sign = reader;
  if (text[at] == ' ') sign.step();
  if (!sign.is(kSign)) return blank_end(reader);
  sign.skip(kSign);
  sign.skip(kLineEnd);
  return sign.at();
}

std::size_t WordSplitter::deepseek_end(std::string_view text, std::size_t at) const {
  std::size_t end = deepseek_match(text, at);
  if (end > at) return end;
  do {
    end += code_point_at(text, end).size;
  } while (end < text.size() && deepseek_match(text, end) == end);
  return end;
}

std::size_t WordSplitter::numbers_end(std::string_view text, std::size_t at) const {
  Reader reader(text, at, *classes_);
  if (reader.is(kNumber)) {
    for (std::size_t digits = 0; digits < digits_ && reader.is(kNumber); ++digits) reader.step();
  } else {
    reader.skip_but(kNumber);
  }
  return reader.at();
}

}  // namespace orrery

// tokens/text/word_splitter.hpp - the word patterns of most models as code: the divisions that
// their regular expressions make, several times as fast.
//
// A value; safe from every thread. Invariant: the words of a text, joined, are the text; they are
// the matches of the pattern that `of_pattern` was given, and what lies between two matches. Cost:
// one look at each character.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tokens/text/unicode_class.hpp"

namespace orrery {

class WordSplitter {
 public:
  /// Returns the splitter of a regular expression; nothing if it is not one of the known.
  [[nodiscard]] static std::optional<WordSplitter> of_pattern(std::string_view written);
  /// The pattern of GPT-2, which "ByteLevel" names.
  [[nodiscard]] static WordSplitter gpt2();

  /// Whether every character belongs to a match.
  [[nodiscard]] bool covers() const { return family_ <= Family::kO200k; }
  /// Returns the end of the word that begins at `at`, which must lie inside the text.
  [[nodiscard]] std::size_t word_end(std::string_view text, std::size_t at) const;

 private:
  enum class Family : std::uint8_t { kGpt2, kCl100k, kO200k, kDeepseek, kNumbers, kHanAndKana };

  WordSplitter(Family family, std::uint8_t word, std::size_t digits)
      : family_(family), word_(word), digits_(digits), classes_(&UnicodeClasses::table()) {}
  [[nodiscard]] std::size_t gpt2_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t cl100k_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t o200k_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t deepseek_end(std::string_view text, std::size_t at) const;
  /// The end of a match at `at`; `at` if there is none.
  [[nodiscard]] std::size_t deepseek_match(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t numbers_end(std::string_view text, std::size_t at) const;
  /// The end of what begins with neither a letter nor a digit: signs, line ends or spaces.
  [[nodiscard]] std::size_t rest_end(std::string_view text, std::size_t at) const;

  Family family_;
  std::uint8_t word_;   ///< classes of the characters of words
  std::size_t digits_;  ///< most digits of a number; 0 is any
  const UnicodeClasses* classes_;
};

}  // namespace orrery

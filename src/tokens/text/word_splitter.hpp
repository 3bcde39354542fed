// tokens/text/word_splitter.hpp - the four word patterns of most models as code: the divisions that
// their regular expressions make, several times as fast.
//
// A value; safe from every thread. Invariant: the words of a text, joined, are the text; they are
// the matches of the pattern that `of_pattern` was given. Cost: one look at each character.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery {

class WordSplitter {
 public:
  /// Returns the splitter of a regular expression; nothing if it is not one of the known.
  [[nodiscard]] static std::optional<WordSplitter> of_pattern(std::string_view pattern);
  /// The pattern of GPT-2, which "ByteLevel" names.
  [[nodiscard]] static WordSplitter gpt2();

  /// Returns the end of the word that begins at `at`, which must lie inside the text.
  [[nodiscard]] std::size_t word_end(std::string_view text, std::size_t at) const;

 private:
  enum class Family : std::uint8_t { kGpt2, kCl100k };

  WordSplitter(Family family, std::uint8_t word, std::size_t digits)
      : family_(family), word_(word), digits_(digits) {}
  [[nodiscard]] std::size_t cl100k_end(std::string_view text, std::size_t at) const;

  Family family_;
  std::uint8_t word_;   ///< classes of the characters of words
  std::size_t digits_;  ///< most digits of a number; 0 is any
};

}  // namespace orrery

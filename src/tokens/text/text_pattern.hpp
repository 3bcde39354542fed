// tokens/text/text_pattern.hpp - a regular expression of a tokenizer.json and where it matches.
//
// Made while a tokenizer is loaded; immutable, safe to use from every thread. Patterns are written
// for Oniguruma with its Ruby syntax and Unicode 17 and run by PCRE2: what both read alike is
// passed on, classes are written out, and everything else is refused with its name. Invariant:
// matches are in order and do not overlap. Cost: compiled to machine code where the library can.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;

namespace orrery {

/// A range of bytes of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

class TextPattern {
 public:
  /// Compiles a pattern of a tokenizer.json. Throws LoadFault.
  [[nodiscard]] static TextPattern of_json(std::string_view pattern);
  /// Compiles a pattern in PCRE2's own syntax. Throws LoadFault.
  explicit TextPattern(const std::string& pattern);
  TextPattern(TextPattern&& other) noexcept;
  TextPattern& operator=(TextPattern&& other) noexcept;
  ~TextPattern();

  /// Returns all matches from left to right; bytes that are not UTF-8 match nothing. A search that
  /// exceeds the limits of the library ends there.
  [[nodiscard]] std::vector<TextSpan> find_all(std::string_view text) const;

 private:
  struct Freed {
    void operator()(pcre2_real_code_8* code) const;
    void operator()(pcre2_real_match_context_8* context) const;
  };

  std::unique_ptr<pcre2_real_code_8, Freed> code_;
  std::unique_ptr<pcre2_real_match_context_8, Freed> limits_;
};

/// Writes a pattern of a tokenizer.json in PCRE2's syntax. Throws LoadFault.
[[nodiscard]] std::string pcre2_pattern(std::string_view pattern);
/// Returns the pattern of one character that Unicode counts to words (UTS 18, \w).
[[nodiscard]] std::string word_character_pattern();

}  // namespace orrery

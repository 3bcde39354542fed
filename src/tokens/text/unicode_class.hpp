// tokens/text/unicode_class.hpp - code points of UTF-8 and the classes that word patterns name.
//
// The table is made on first use (a few milliseconds) and never changes: safe from every thread.
// Invariant: classes are those of Unicode 17, which the reference tokenizers use; the library's
// older table is completed by the characters that were assigned since.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A code point of a text, or a byte that is not UTF-8 (value kNoCodePoint, size 1).
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  ///< bytes
};

inline constexpr char32_t kNoCodePoint = 0xFFFFFFFF;

/// As `code_point_at`, of a byte that is not ASCII.
[[nodiscard]] CodePoint long_code_point_at(std::string_view text, std::size_t at);
/// Reads the code point at `at`, which must lie inside the text. A NUL is a code point.
[[nodiscard]] inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? CodePoint{byte, 1} : long_code_point_at(text, at);
}
/// Returns where the run of ASCII that begins at `at` ends.
[[nodiscard]] std::size_t ascii_end(std::string_view text, std::size_t at);
/// Appends a code point in UTF-8.
void append_code_point(char32_t value, std::string& to);

/// Bits of a class.
enum CharClass : std::uint8_t {
  kLetter = 1,    ///< general category L
  kNumber = 2,    ///< N
  kSpace = 4,     ///< White_Space
  kMark = 8,      ///< M
  kLineEnd = 16,  ///< carriage return or line feed
  kSign = 32,     ///< P and S
  kUpper = 64,    ///< Lu and Lt
  kLower = 128    ///< Ll
};

/// Characters assigned by Unicode 15 to 17, by general category; N, P, S and M are not divided,
/// but for Nd.
struct LaterRange {
  char32_t first;
  char32_t last;
  std::string_view category;
};
[[nodiscard]] std::span<const LaterRange> later_ranges();

class UnicodeClasses {
 public:
  /// The one table of the process.
  [[nodiscard]] static const UnicodeClasses& table();

  [[nodiscard]] std::uint8_t of(char32_t value) const {
    if (value < 128) return ascii_[value];
    if (value > 0x10FFFF) return 0;
    return blocks_[static_cast<std::size_t>(index_[value >> 8]) * 256 + (value & 255)];
  }

 private:
  UnicodeClasses();

  std::array<std::uint8_t, 128> ascii_{};
  std::array<std::uint16_t, 0x1100> index_{};
  std::vector<std::uint8_t> blocks_;
};

}  // namespace orrery

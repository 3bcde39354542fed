#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text/utf8.hpp"
#include "tokens/bpe/json_part.hpp"
#include "tokens/text/text_pattern.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::string_view kSpaces = "\\p{Z}\\t-\\r\\x{85}";
constexpr std::string_view kNoSpaces =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
/// Properties whose members are the same here as in the reference.
constexpr std::array<std::string_view, 14> kProperties = {
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "Nd", "M", "P", "S", "Z", "Zs", "Han"};
constexpr char32_t kLaterHan = 0x2B739;  ///< first of the Han characters assigned by Unicode 15

std::string later_members(std::string_view property) {
  std::string members;
  for (const LaterRange& range : later_ranges()) {
    const bool inside = property == "Han" ? range.first >= kLaterHan
                                          : range.category.substr(0, property.size()) == property;
    if (inside) members += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", +range.first, +range.last);
  }
  return members;
}

/// Reads a pattern once from left to right and writes it for PCRE2.
class PatternWriter {
 public:
  explicit PatternWriter(std::string_view pattern) : pattern_(pattern) {}

  std::string write() {
    while (at_ < pattern_.size()) write_item();
    return std::move(written_);
  }

 private:
  void write_item();
  void write_group();
  void write_set();
  void write_escape();
  /// Writes an escape as members of a set.
  void write_set_escape();
  /// Reads "\p{L}" or "\P{L}"; returns the members of the set.
  std::string read_property();
  [[noreturn]] void refuse(std::string_view part) const {
    throw LoadFault{fmt::format("the pattern \"{}\" has \"{}\", which is not supported",
                                printable(pattern_, 200), printable(part, 40))};
  }
  [[nodiscard]] bool next_is(std::string_view text) const {
    return pattern_.substr(at_).starts_with(text);
  }
  void copy(std::size_t bytes) {
    written_ += pattern_.substr(at_, bytes);
    at_ += std::min(bytes, pattern_.size() - at_);
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string written_;
};

void PatternWriter::write_item() {
  switch (pattern_[at_]) {
    case '\\':
      return write_escape();
    case '[':
      return write_set();
    case '(':
      return write_group();
    case '{':
      if (next_is("{,")) refuse("{,");
      return copy(1);
    case '}':
      // Ruby reads a sign behind an interval as another repetition, PCRE2 as its manner.
      if (next_is("}+") || next_is("}?")) refuse(pattern_.substr(at_, 2));
      return copy(1);
    default:
      return copy(1);
  }
}

void PatternWriter::write_group() {
  constexpr std::array<std::string_view, 9> kGroups = {"(?:", "(?=",  "(?!",  "(?<=", "(?<!",
                                                       "(?>", "(?i:", "(?i)", "(?-i:"};
  const auto found = std::ranges::find_if(kGroups, [&](auto group) { return next_is(group); });
  if (found != kGroups.end()) return copy(found->size());
  if (next_is("(?") || next_is("(*")) refuse(pattern_.substr(at_, 3));
  copy(1);
}

void PatternWriter::write_set() {
  copy(next_is("[^") ? 2 : 1);
  if (next_is("]")) refuse("[]");
  while (!next_is("]")) {
    if (at_ >= pattern_.size()) refuse("[");
    if (next_is("[")) refuse("a set within a set");
    if (next_is("&&")) refuse("&&");
    if (next_is("\\")) {
      write_set_escape();
    } else {
      copy(1);
    }
  }
  copy(1);
}

std::string PatternWriter::read_property() {
  const std::size_t end = pattern_.find('}', at_);
  if (pattern_.size() < at_ + 4 || pattern_[at_ + 2] != '{' || end == std::string_view::npos) {
    refuse(pattern_.substr(at_, 4));
  }
  const std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
  if (std::ranges::find(kProperties, name) == kProperties.end()) {
    refuse(pattern_.substr(at_, end - at_ + 1));
  }
  at_ = end + 1;
  return fmt::format("\\p{{{}}}{}", name, later_members(name));
}

void PatternWriter::write_set_escape() {
  if (next_is("\\p{")) {
    written_ += read_property();
  } else if (next_is("\\s") || next_is("\\S")) {
    written_ += next_is("\\s") ? kSpaces : kNoSpaces;
    at_ += 2;
  } else if (next_is("\\d")) {
    written_ += "\\p{Nd}" + later_members("Nd");
    at_ += 2;
  } else if (next_is("\\P")) {
    refuse("\\P in a set");
  } else {
    write_escape();
  }
}

void PatternWriter::write_escape() {
  constexpr std::string_view kSame = "rntfve";
  if (at_ + 1 >= pattern_.size()) refuse("\\");
  const char kind = pattern_[at_ + 1];
  if (kind == 'p' || kind == 'P') {
    const std::string members = read_property();
    written_ += fmt::format("[{}{}]", kind == 'P' ? "^" : "", members);
  } else if (kind == 's' || kind == 'S') {
    written_ += fmt::format("[{}{}]", kind == 'S' ? "^" : "", kSpaces);
    at_ += 2;
  } else if (kind == 'd') {
    written_ += fmt::format("[\\p{{Nd}}{}]", later_members("Nd"));
    at_ += 2;
  } else if (kind == 'x' || kind == 'u') {
    const std::size_t digits = kind == 'u' ? 4 : 2;
    const std::string_view hex = pattern_.substr(at_ + 2, digits);
    const bool good =
        hex.size() == digits && std::ranges::all_of(hex, [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        });
    if (!good) refuse(pattern_.substr(at_, digits + 2));
    written_ += fmt::format("\\x{{{}}}", hex);
    at_ += digits + 2;
  } else if (kSame.find(kind) != std::string_view::npos) {
    copy(2);
  } else if (static_cast<unsigned char>(kind) < 128 &&
             !std::isalnum(static_cast<unsigned char>(kind))) {
    copy(2);
  } else {
    refuse(pattern_.substr(at_, 2));
  }
}

}  // namespace

std::string pcre2_pattern(std::string_view pattern) { return PatternWriter(pattern).write(); }

std::string word_character_pattern() {
  return fmt::format("[\\p{{Alphabetic}}\\p{{M}}\\p{{Nd}}\\p{{Pc}}\\p{{Join_Control}}{}{}{}]",
                     later_members("L"), later_members("M"), later_members("Nd"));
}

}  // namespace orrery

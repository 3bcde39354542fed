#include "tokens/text/unicode_class.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace orrery {
namespace {

constexpr std::array kLater = {
    LaterRange{0x897, 0x897, "M"},      LaterRange{0xCF3, 0xCF3, "M"},
    LaterRange{0xECE, 0xECE, "M"},      LaterRange{0x1B4E, 0x1B4F, "P"},
    LaterRange{0x1B7F, 0x1B7F, "P"},    LaterRange{0x1C89, 0x1C89, "Lu"},
    LaterRange{0x1C8A, 0x1C8A, "Ll"},   LaterRange{0x2427, 0x2429, "S"},
    LaterRange{0x2FFC, 0x2FFF, "S"},    LaterRange{0x31E4, 0x31E5, "S"},
    LaterRange{0x31EF, 0x31EF, "S"},    LaterRange{0xA7CB, 0xA7CC, "Lu"},
    LaterRange{0xA7CD, 0xA7CD, "Ll"},   LaterRange{0xA7DA, 0xA7DA, "Lu"},
    LaterRange{0xA7DB, 0xA7DB, "Ll"},   LaterRange{0xA7DC, 0xA7DC, "Lu"},
    LaterRange{0x105C0, 0x105F3, "Lo"}, LaterRange{0x10D40, 0x10D49, "Nd"},
    LaterRange{0x10D4A, 0x10D4D, "Lo"}, LaterRange{0x10D4E, 0x10D4E, "Lm"},
    LaterRange{0x10D4F, 0x10D4F, "Lo"}, LaterRange{0x10D50, 0x10D65, "Lu"},
    LaterRange{0x10D69, 0x10D6D, "M"},  LaterRange{0x10D6E, 0x10D6E, "P"},
    LaterRange{0x10D6F, 0x10D6F, "Lm"}, LaterRange{0x10D70, 0x10D85, "Ll"},
    LaterRange{0x10D8E, 0x10D8F, "S"},  LaterRange{0x10EC2, 0x10EC4, "Lo"},
    LaterRange{0x10EFC, 0x10EFF, "M"},  LaterRange{0x1123F, 0x11240, "Lo"},
    LaterRange{0x11241, 0x11241, "M"},  LaterRange{0x11380, 0x11389, "Lo"},
    LaterRange{0x1138B, 0x1138B, "Lo"}, LaterRange{0x1138E, 0x1138E, "Lo"},
    LaterRange{0x11390, 0x113B5, "Lo"}, LaterRange{0x113B7, 0x113B7, "Lo"},
    LaterRange{0x113B8, 0x113C0, "M"},  LaterRange{0x113C2, 0x113C2, "M"},
    LaterRange{0x113C5, 0x113C5, "M"},  LaterRange{0x113C7, 0x113CA, "M"},
    LaterRange{0x113CC, 0x113D0, "M"},  LaterRange{0x113D1, 0x113D1, "Lo"},
    LaterRange{0x113D2, 0x113D2, "M"},  LaterRange{0x113D3, 0x113D3, "Lo"},
    LaterRange{0x113D4, 0x113D5, "P"},  LaterRange{0x113D7, 0x113D8, "P"},
    LaterRange{0x113E1, 0x113E2, "M"},  LaterRange{0x116D0, 0x116E3, "Nd"},
    LaterRange{0x11B00, 0x11B09, "P"},  LaterRange{0x11BC0, 0x11BE0, "Lo"},
    LaterRange{0x11BE1, 0x11BE1, "P"},  LaterRange{0x11BF0, 0x11BF9, "Nd"},
    LaterRange{0x11F00, 0x11F01, "M"},  LaterRange{0x11F02, 0x11F02, "Lo"},
    LaterRange{0x11F03, 0x11F03, "M"},  LaterRange{0x11F04, 0x11F10, "Lo"},
    LaterRange{0x11F12, 0x11F33, "Lo"}, LaterRange{0x11F34, 0x11F3A, "M"},
    LaterRange{0x11F3E, 0x11F42, "M"},  LaterRange{0x11F43, 0x11F4F, "P"},
    LaterRange{0x11F50, 0x11F59, "Nd"}, LaterRange{0x11F5A, 0x11F5A, "M"},
    LaterRange{0x1342F, 0x1342F, "Lo"}, LaterRange{0x13440, 0x13440, "M"},
    LaterRange{0x13441, 0x13446, "Lo"}, LaterRange{0x13447, 0x13455, "M"},
    LaterRange{0x13460, 0x143FA, "Lo"}, LaterRange{0x16100, 0x1611D, "Lo"},
    LaterRange{0x1611E, 0x1612F, "M"},  LaterRange{0x16130, 0x16139, "Nd"},
    LaterRange{0x16D40, 0x16D42, "Lm"}, LaterRange{0x16D43, 0x16D6A, "Lo"},
    LaterRange{0x16D6B, 0x16D6C, "Lm"}, LaterRange{0x16D6D, 0x16D6F, "P"},
    LaterRange{0x16D70, 0x16D79, "Nd"}, LaterRange{0x18CFF, 0x18CFF, "Lo"},
    LaterRange{0x1B132, 0x1B132, "Lo"}, LaterRange{0x1B155, 0x1B155, "Lo"},
    LaterRange{0x1CC00, 0x1CCEF, "S"},  LaterRange{0x1CCF0, 0x1CCF9, "Nd"},
    LaterRange{0x1CD00, 0x1CEB3, "S"},  LaterRange{0x1D2C0, 0x1D2D3, "No"},
    LaterRange{0x1DF25, 0x1DF2A, "Ll"}, LaterRange{0x1E030, 0x1E06D, "Lm"},
    LaterRange{0x1E08F, 0x1E08F, "M"},  LaterRange{0x1E4D0, 0x1E4EA, "Lo"},
    LaterRange{0x1E4EB, 0x1E4EB, "Lm"}, LaterRange{0x1E4EC, 0x1E4EF, "M"},
    LaterRange{0x1E4F0, 0x1E4F9, "Nd"}, LaterRange{0x1E5D0, 0x1E5ED, "Lo"},
    LaterRange{0x1E5EE, 0x1E5EF, "M"},  LaterRange{0x1E5F0, 0x1E5F0, "Lo"},
    LaterRange{0x1E5F1, 0x1E5FA, "Nd"}, LaterRange{0x1E5FF, 0x1E5FF, "P"},
    LaterRange{0x1F6DC, 0x1F6DC, "S"},  LaterRange{0x1F774, 0x1F776, "S"},
    LaterRange{0x1F77B, 0x1F77F, "S"},  LaterRange{0x1F7D9, 0x1F7D9, "S"},
    LaterRange{0x1F8B2, 0x1F8BB, "S"},  LaterRange{0x1F8C0, 0x1F8C1, "S"},
    LaterRange{0x1FA75, 0x1FA77, "S"},  LaterRange{0x1FA87, 0x1FA89, "S"},
    LaterRange{0x1FA8F, 0x1FA8F, "S"},  LaterRange{0x1FAAD, 0x1FAAF, "S"},
    LaterRange{0x1FABB, 0x1FABF, "S"},  LaterRange{0x1FAC6, 0x1FAC6, "S"},
    LaterRange{0x1FACE, 0x1FACF, "S"},  LaterRange{0x1FADA, 0x1FADC, "S"},
    LaterRange{0x1FADF, 0x1FADF, "S"},  LaterRange{0x1FAE8, 0x1FAE9, "S"},
    LaterRange{0x1FAF7, 0x1FAF8, "S"},  LaterRange{0x1FBCB, 0x1FBEF, "S"},
    LaterRange{0x2B739, 0x2B739, "Lo"}, LaterRange{0x2EBF0, 0x2EE5D, "Lo"},
    LaterRange{0x31350, 0x323AF, "Lo"},
};

std::uint8_t class_by_category(std::string_view category) {
  switch (category.front()) {
    case 'L':
      if (category == "Lu" || category == "Lt") return kLetter | kUpper;
      return category == "Ll" ? kLetter | kLower : kLetter;
    case 'N':
      return kNumber;
    case 'M':
      return kMark;
    case 'P':
    case 'S':
      return kSign;
    default:
      return 0;
  }
}

bool is_space(char32_t value) {
  if (value < 128) return (value >= '\t' && value <= '\r') || value == ' ';
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  return value == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

std::uint8_t class_by_library(char32_t value) {
  std::uint8_t bits =
      class_by_category(utf8proc_category_string(static_cast<utf8proc_int32_t>(value)));
  if (is_space(value)) bits |= kSpace;
  if (value == '\r' || value == '\n') bits |= kLineEnd;
  return bits;
}

/// Bytes of the sequence that a lead byte other than ASCII opens, 0 if it opens none.
std::size_t sequence_size(unsigned char lead) {
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

}  // namespace

CodePoint long_code_point_at(std::string_view text, std::size_t at) {
  constexpr CodePoint kBad{kNoCodePoint, 1};
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t size = sequence_size(lead);
  if (size == 0 || at + size > text.size()) return kBad;
  char32_t value = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return kBad;
    value = (value << 6) | (byte & 0x3Fu);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return kBad;
  return {value, size};
}

std::size_t ascii_end(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kNotAscii = 0x8080808080808080;
  for (; text.size() - at >= 8; at += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, 8);
    if ((bytes & kNotAscii) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

void append_code_point(char32_t value, std::string& to) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80u | ((value >> shift) & 0x3Fu)); };
  if (value < 0x80) {
    to += static_cast<char>(value);
  } else if (value < 0x800) {
    to += static_cast<char>(0xC0u | (value >> 6));
    tail(0);
  } else if (value < 0x10000) {
    to += static_cast<char>(0xE0u | (value >> 12));
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xF0u | (value >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::span<const LaterRange> later_ranges() { return kLater; }

const UnicodeClasses& UnicodeClasses::table() {
  static const UnicodeClasses table;
  return table;
}

UnicodeClasses::UnicodeClasses() {
  std::vector<std::uint8_t> all(0x110000);
  for (char32_t value = 0; value < 0x110000; ++value) all[value] = class_by_library(value);
  for (const LaterRange& range : kLater) {
    std::fill(all.begin() + range.first, all.begin() + range.last + 1,
              class_by_category(range.category));
  }
  std::copy_n(all.begin(), ascii_.size(), ascii_.begin());
  std::map<std::vector<std::uint8_t>, std::uint16_t> known;
  for (std::size_t block = 0; block < index_.size(); ++block) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(block * 256);
    std::vector<std::uint8_t> bits(begin, begin + 256);
    const auto [place, added] = known.try_emplace(bits, static_cast<std::uint16_t>(known.size()));
    if (added) blocks_.insert(blocks_.end(), bits.begin(), bits.end());
    index_[block] = place->second;
  }
}

}  // namespace orrery

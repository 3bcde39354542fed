#include "tokens/text/python_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

utf8proc_category_t category(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_printable(char32_t value) {
  if (value == ' ') return true;
  switch (category(value)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_cased(char32_t value) {
  const auto kind = category(value);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
         kind == UTF8PROC_CATEGORY_LT;
}

void append_upper(char32_t value, std::string& to) {
  if (value == 0xDF) {
    to += "SS";
  } else {
    append_code_point(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(value))),
                      to);
  }
}

void append_title(char32_t value, std::string& to) {
  if (value == 0xDF) {
    to += "Ss";
  } else {
    append_code_point(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(value))),
                      to);
  }
}

void append_lower(char32_t value, std::string& to) {
  if (value == 0x130) {
    to += "i\xcc\x87";
  } else {
    append_code_point(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value))),
                      to);
  }
}

template <class Change>
std::string changed(std::string_view text, Change change) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == kNoCodePoint) {
      made += text[at];
    } else {
      change(point.value, made);
    }
    at += point.size;
  }
  return made;
}

bool is_stripped(std::string_view character, std::optional<std::string_view> characters) {
  if (!characters) return is_python_space(code_point_at(character, 0).value);
  return characters->find(character) != std::string_view::npos;
}

std::string_view last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return text.substr(at);
}

}  // namespace

bool is_python_space(char32_t value) {
  return (value >= 0x1C && value <= 0x1F) || (UnicodeClasses::table().of(value) & kSpace) != 0;
}

std::string_view python_stripped(std::string_view text, std::optional<std::string_view> characters,
                                 StripSide side) {
  while (side != StripSide::kRight && !text.empty()) {
    const std::string_view first = text.substr(0, code_point_at(text, 0).size);
    if (!is_stripped(first, characters)) break;
    text.remove_prefix(first.size());
  }
  while (side != StripSide::kLeft && !text.empty()) {
    const std::string_view last = last_character(text);
    if (!is_stripped(last, characters)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

std::string python_repr(std::string_view text) {
  const bool twice =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = twice ? '"' : '\'';
  std::string shown(1, quote);
  shown += changed(text, [&](char32_t value, std::string& to) {
    if (value == '\\' || value == static_cast<unsigned char>(quote)) {
      to += '\\';
      to += static_cast<char>(value);
    } else if (value == '\n' || value == '\r' || value == '\t') {
      to += value == '\n' ? "\\n" : value == '\r' ? "\\r" : "\\t";
    } else if (is_printable(value)) {
      append_code_point(value, to);
    } else if (value < 0x100) {
      to += fmt::format("\\x{:02x}", static_cast<unsigned>(value));
    } else if (value < 0x10000) {
      to += fmt::format("\\u{:04x}", static_cast<unsigned>(value));
    } else {
      to += fmt::format("\\U{:08x}", static_cast<unsigned>(value));
    }
  });
  return shown + quote;
}

std::string python_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::abs(number);
  if (number != 0 && (size < 1e-4 || size >= 1e16)) {
    std::string shown = fmt::format("{:e}", number);
    // The shortest digits that give the number back, then the exponent.
    for (int digits = 0; digits <= 17; ++digits) {
      shown = fmt::format("{:.{}e}", number, digits);
      if (std::strtod(shown.c_str(), nullptr) == number) break;
    }
    return shown;
  }
  std::string shown = fmt::format("{}", number);
  if (shown.find_first_of(".e") == std::string::npos) shown += ".0";
  return shown;
}

std::size_t python_length(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::size_t byte_of_character(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  while (character > 0 && at < text.size()) {
    at += code_point_at(text, at).size;
    --character;
  }
  return at;
}

std::string python_upper(std::string_view text) { return changed(text, append_upper); }

std::string python_lower(std::string_view text) { return changed(text, append_lower); }

std::string python_title(std::string_view text) {
  bool inside = false;
  return changed(text, [&](char32_t value, std::string& to) {
    if (inside) {
      append_lower(value, to);
    } else {
      append_title(value, to);
    }
    inside = is_cased(value);
  });
}

std::string python_capitalize(std::string_view text) {
  bool first = true;
  return changed(text, [&](char32_t value, std::string& to) {
    if (first) {
      append_title(value, to);
    } else {
      append_lower(value, to);
    }
    first = false;
  });
}

std::vector<std::string> python_split(std::string_view text,
                                      std::optional<std::string_view> separator,
                                      std::int64_t times) {
  std::vector<std::string> parts;
  if (!separator) {
    text = python_stripped(text, {}, StripSide::kLeft);
    while (!text.empty()) {
      if (times >= 0 && static_cast<std::int64_t>(parts.size()) >= times) {
        parts.emplace_back(text);
        break;
      }
      std::size_t end = 0;
      while (end < text.size() && !is_python_space(code_point_at(text, end).value)) {
        end += code_point_at(text, end).size;
      }
      parts.emplace_back(text.substr(0, end));
      text = python_stripped(text.substr(end), {}, StripSide::kLeft);
    }
    return parts;
  }
  while (times < 0 || static_cast<std::int64_t>(parts.size()) < times) {
    const std::size_t at = text.find(*separator);
    if (at == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + separator->size());
  }
  parts.emplace_back(text);
  return parts;
}

std::vector<std::string> python_rsplit(std::string_view text,
                                       std::optional<std::string_view> separator,
                                       std::int64_t times) {
  std::vector<std::string> parts;
  if (!separator) text = python_stripped(text, {}, StripSide::kRight);
  while (times < 0 || static_cast<std::int64_t>(parts.size()) < times) {
    if (separator) {
      const std::size_t at = text.rfind(*separator);
      if (at == std::string_view::npos) break;
      parts.emplace_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    } else {
      if (text.empty()) break;
      std::size_t begin = text.size();
      while (begin > 0) {
        const std::string_view last = last_character(text.substr(0, begin));
        if (is_python_space(code_point_at(last, 0).value)) break;
        begin -= last.size();
      }
      parts.emplace_back(text.substr(begin));
      text = python_stripped(text.substr(0, begin), {}, StripSide::kRight);
      if (python_stripped(text, {}, StripSide::kLeft).empty()) text = {};
    }
  }
  if (separator || !text.empty()) {
    parts.emplace_back(text);
  }
  std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string> python_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const char32_t c = point.value;
    const bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    const std::size_t line_end = at;
    at += point.size;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, line_end - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string python_replaced(std::string_view text, std::string_view from, std::string_view to,
                            std::int64_t times) {
  std::string made;
  std::size_t at = 0;
  while (times != 0 && at <= text.size()) {
    const std::size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    made += text.substr(at, found - at);
    made += to;
    at = found + from.size();
    if (times > 0) --times;
    if (!from.empty()) continue;
    // An empty text stands before each character and at the end.
    if (at == text.size()) break;
    const std::size_t size = code_point_at(text, at).size;
    made += text.substr(at, size);
    at += size;
  }
  if (at < text.size()) made += text.substr(at);
  return made;
}

}  // namespace orrery

#include "fleet/import/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kNamesMax = 1u << 20;

std::optional<std::uint64_t> number(std::string_view text) {
  constexpr std::size_t kDigitsMax = 18;  // any such number fits, and so does the one after it
  if (text.size() > kDigitsMax) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Expands "001-004,7" to 001 002 003 004 7.
Result<std::vector<std::string>> expand_ranges(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == range.npos ? low : range.substr(dash + 1);
    const auto first = number(low);
    const auto last = number(high);
    if (!first || !last || *last < *first || *last - *first >= kNamesMax - parts.size()) {
      return input_error(
          {}, fmt::format("\"{}\" is not a range such as 001-128", printable(range, 60)));
    }
    for (std::uint64_t n = *first; n <= *last; ++n) {
      parts.push_back(fmt::format("{:0{}}", n, low.size()));
    }
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// Whether a text may stand outside the brackets; it becomes part of up to kNamesMax names.
bool is_literal(std::string_view text) {
  constexpr std::size_t kLengthMax = 64;
  return text.size() <= kLengthMax && std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                  c == '.';
         });
}

// Expands one entry without top-level commas: literal text and bracketed ranges, which multiply.
Result<std::vector<std::string>> expand_entry(std::string_view text) {
  constexpr std::size_t kBracketsMax = 8;
  std::vector<std::string> names = {""};
  for (std::size_t brackets = 0; !text.empty(); ++brackets) {
    const std::size_t open = text.find('[');
    const std::string_view literal = text.substr(0, open);
    if (!is_literal(literal) || brackets > kBracketsMax) {
      return input_error({}, fmt::format("\"{}\" is not a host name", printable(text, 60)));
    }
    for (std::string& name : names) name += literal;
    if (open == text.npos) break;
    const std::size_t close = text.find(']', open);
    if (close == text.npos) return input_error({}, "a \"[\" without its \"]\"");
    auto parts = expand_ranges(text.substr(open + 1, close - open - 1));
    if (!parts) return forward_error(parts);
    if (names.size() * parts->size() > kNamesMax) {
      return input_error({}, fmt::format("more than {} names", kNamesMax));
    }
    std::vector<std::string> product;
    for (const std::string& name : names) {
      for (const std::string& part : *parts) product.push_back(name + part);
    }
    names = std::move(product);
    text.remove_prefix(close + 1);
  }
  return names;
}

std::size_t top_level_comma(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.npos;
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = top_level_comma(text);
    const std::string_view entry = text.substr(0, comma);
    if (entry.empty()) {
      return input_error({}, fmt::format("\"{}\" is not a host name", printable(entry, 60)));
    }
    auto expanded = expand_entry(entry);
    if (!expanded) return forward_error(expanded);
    // All names of an entry begin alike. Programs get them as arguments and directories as names.
    if (std::isalnum(static_cast<unsigned char>(expanded->front().front())) == 0) {
      return input_error({},
                         fmt::format("\"{}\" is not a host name: it must begin with a letter or "
                                     "a digit",
                                     printable(expanded->front(), 60)));
    }
    if (names.size() + expanded->size() > kNamesMax) {
      return input_error({}, fmt::format("more than {} names", kNamesMax));
    }
    names.insert(names.end(), expanded->begin(), expanded->end());
    if (comma == text.npos) return names;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace orrery

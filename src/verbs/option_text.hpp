// verbs/option_text.hpp - values of options as people type them, and errors that name the
// option.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"

namespace orrery {

[[nodiscard]] inline tl::unexpected<Error> wrong(std::string_view option, const std::string& what) {
  return input_error({}, fmt::format("--{}: {}", option, what));
}

/// Splits a list at commas.
[[nodiscard]] inline std::vector<std::string> pieces(const std::string& list) {
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    found.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

/// Reads one of the words of an enumeration.
template <WordedEnum T>
[[nodiscard]] Result<T> word_option(std::string_view option, std::string_view text) {
  std::vector<std::string_view> words;
  std::string list;
  for (const auto& entry : enum_words(T{})) {
    if (entry.word == text) return entry.value;
    words.push_back(entry.word);
    list += (list.empty() ? "" : ", ") + std::string(entry.word);
  }
  return wrong(option,
               fmt::format("\"{}\" is none of {}{}", text, list, did_you_mean(text, words)));
}

/// Reads a quantity with its unit. Only dollars and tokens may be bare numbers: for others the unit
/// would not be clear.
template <class Q>
[[nodiscard]] Result<Q> quantity_option(std::string_view option, const std::string& text) {
  constexpr bool kCounted = std::is_same_v<Q, Dollars> || std::is_same_v<Q, Tokens>;
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (kCounted && failed == std::errc() && end == text.data() + text.size()) {
    if (std::isfinite(number) && number > 0) return Q(number);
    return wrong(option, fmt::format("{}: expected more than 0", text));
  }
  Result<Q> quantity = parse<Q>(text);
  if (!quantity) return wrong(option, quantity.error().message);
  if (quantity->value() <= 0) return wrong(option, fmt::format("{}: expected more than 0", text));
  return quantity;
}

}  // namespace orrery

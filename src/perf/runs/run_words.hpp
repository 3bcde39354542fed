// perf/runs/run_words.hpp - the free text of published rows, cut into words.
//
// Pure functions over borrowed text. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Runs of ASCII letters, digits and the bytes of `kept`, in lower case; all else separates.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text,
                                                   std::string_view kept = {});

/// `words[first, first + count)` with one space between them.
[[nodiscard]] std::string join_words(const std::vector<std::string>& words, std::size_t first,
                                     std::size_t count);

/// "A100-SXM_80GB" and "a100 sxm 80gb" alike: the words, joined by spaces.
[[nodiscard]] std::string spaced_name(std::string_view text);

[[nodiscard]] bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list);

/// The number a word begins with and what is behind it: "8x" is 8 and "x".
struct NumberPrefix {
  double value = 0;
  std::string_view rest;
};

/// Nothing unless the word begins with a digit.
[[nodiscard]] std::optional<NumberPrefix> number_prefix(std::string_view word);

/// The word as a whole number from 1 to 2^31, if it is nothing else.
[[nodiscard]] std::optional<std::uint32_t> whole_number(std::string_view word);

/// `value` as such a number.
[[nodiscard]] std::optional<std::uint32_t> whole_count(double value);

}  // namespace orrery

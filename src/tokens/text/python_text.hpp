// tokens/text/python_text.hpp - methods of Python's strings that templates call, on UTF-8.
//
// Functions of their arguments; safe from every thread. Characters are code points. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class StripSide : std::uint8_t { kLeft, kRight, kBoth };

/// Whether Python's str.isspace() holds.
[[nodiscard]] bool is_python_space(char32_t value);
/// str.strip(characters): spaces if no characters are given.
[[nodiscard]] std::string_view python_stripped(std::string_view text,
                                               std::optional<std::string_view> characters,
                                               StripSide side);
/// repr(text).
[[nodiscard]] std::string python_repr(std::string_view text);
/// repr(number): the shortest digits that give it back.
[[nodiscard]] std::string python_repr(double number);
[[nodiscard]] std::size_t python_length(std::string_view text);
/// The byte where a character begins; characters from 0 to the length.
[[nodiscard]] std::size_t byte_of_character(std::string_view text, std::size_t character);
[[nodiscard]] std::string python_upper(std::string_view text);
[[nodiscard]] std::string python_lower(std::string_view text);
/// str.title(): a capital behind everything that is no letter.
[[nodiscard]] std::string python_title(std::string_view text);
[[nodiscard]] std::string python_capitalize(std::string_view text);
/// str.split() at runs of spaces, and str.split(separator), at most so often (-1: any).
[[nodiscard]] std::vector<std::string> python_split(std::string_view text,
                                                    std::optional<std::string_view> separator,
                                                    std::int64_t times);
[[nodiscard]] std::vector<std::string> python_rsplit(std::string_view text,
                                                     std::optional<std::string_view> separator,
                                                     std::int64_t times);
[[nodiscard]] std::vector<std::string> python_lines(std::string_view text);
/// str.replace(from, to, times); -1 is any number of times.
[[nodiscard]] std::string python_replaced(std::string_view text, std::string_view from,
                                          std::string_view to, std::int64_t times);

}  // namespace orrery

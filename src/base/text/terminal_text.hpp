// base/text/terminal_text.hpp - text of any origin, made safe to show: names, commands and causes
// come from users, and a terminal obeys control characters in them.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Bytes of the character at `at` if a terminal, a log or a page would obey it instead of showing
/// it: C0 and C1 controls, DEL, line and paragraph separators, controls of writing direction. 0:
/// the character is shown, or the bytes are not UTF-8.
[[nodiscard]] std::size_t control_length(std::string_view text, std::size_t at);

enum class Newlines { kKept, kEscaped };

/// Text of unknown origin as a terminal may show it: what control_length() finds, and bytes that
/// are not UTF-8, become visible escapes ("\\n", "\\x1b", "\\u202e"). O(n).
[[nodiscard]] std::string terminal_text(std::string_view text, Newlines newlines);

/// Makes one line of a sentence with names or causes of users: line breaks in them are escaped,
/// too.
[[nodiscard]] inline std::string one_line(std::string_view text) {
  return terminal_text(text, Newlines::kEscaped);
}

/// JSON text with the same characters escaped as in JSON: the same value, safe to show.
[[nodiscard]] std::string terminal_json(std::string_view json);

}  // namespace orrery

// base/text/utf8.hpp - whether a text is valid UTF-8, and positions in it.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Offset of the first byte that does not continue valid UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, at most U+10FFFF) or is a NUL; npos when all is well. O(n).
[[nodiscard]] std::size_t first_invalid_utf8(std::string_view text);

struct TextPlace {
  int line = 1;    ///< from 1
  int column = 1;  ///< from 1, in code points
};

[[nodiscard]] TextPlace place_of(std::string_view text, std::size_t offset);

/// At most `length_max` bytes of the text, cut between code points with "..." behind, control
/// characters shown as '?': fit for a one-line message.
[[nodiscard]] std::string printable(std::string_view text, std::size_t length_max);

}  // namespace orrery

// tokens/text/byte_alphabet.hpp - the printable character that stands for each byte in byte-level
// vocabularies (GPT-2: printable Latin-1 stands for itself, the other bytes for U+0100 onwards).
//
// Functions and a table made on first use; safe from every thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

/// Characters by byte.
[[nodiscard]] const std::array<char32_t, 256>& byte_alphabet();
/// Writes each byte as its character, in UTF-8.
[[nodiscard]] std::string bytes_as_characters(std::string_view bytes);
/// Returns the bytes that characters stand for; nothing if one of them stands for none.
[[nodiscard]] std::optional<std::string> characters_as_bytes(std::string_view text);
/// Returns the byte of a token such as "<0x0A>", in either case; nothing for other tokens.
[[nodiscard]] std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace orrery

#include "tokens/text/byte_alphabet.hpp"

#include <charconv>
#include <cstdint>

#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::size_t kAlphabetEnd = 0x144;  ///< behind the last character that stands for a byte

std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    alphabet[byte] = printable ? byte : next++;
  }
  return alphabet;
}

std::array<std::int16_t, kAlphabetEnd> make_bytes() {
  std::array<std::int16_t, kAlphabetEnd> bytes{};
  bytes.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    bytes[byte_alphabet()[byte]] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}

}  // namespace

const std::array<char32_t, 256>& byte_alphabet() {
  static const std::array<char32_t, 256> alphabet = make_alphabet();
  return alphabet;
}

std::string bytes_as_characters(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    append_code_point(byte_alphabet()[static_cast<unsigned char>(byte)], text);
  }
  return text;
}

std::optional<std::string> characters_as_bytes(std::string_view text) {
  static const std::array<std::int16_t, kAlphabetEnd> bytes = make_bytes();
  std::string to;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value >= kAlphabetEnd || bytes[point.value] < 0) return std::nullopt;
    to += static_cast<char>(bytes[point.value]);
    at += point.size;
  }
  return to;
}

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = token.data() + 5;
  const auto [at, failed] = std::from_chars(token.data() + 3, end, byte, 16);
  if (failed != std::errc() || at != end) return std::nullopt;
  return byte;
}

}  // namespace orrery

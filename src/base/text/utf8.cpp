#include "base/text/utf8.hpp"

#include <algorithm>
#include <cstdint>

#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

// Length of the valid sequence at `at`, 0 when there is none. Table 3-7 of the Unicode standard:
// the second byte's range depends on the first.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : std::uint8_t{0};
  };
  const auto between = [](std::uint8_t b, int low, int high) { return b >= low && b <= high; };
  const auto tail = [&](std::size_t i) { return between(byte(i), 0x80, 0xBF); };
  const std::uint8_t lead = byte(0);
  if (lead >= 0x01 && lead <= 0x7F) return 1;
  if (between(lead, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  if (between(lead, 0xE0, 0xEF)) {
    const int low = lead == 0xE0 ? 0xA0 : 0x80;
    const int high = lead == 0xED ? 0x9F : 0xBF;
    return between(byte(1), low, high) && tail(2) ? 3 : 0;
  }
  if (between(lead, 0xF0, 0xF4)) {
    const int low = lead == 0xF0 ? 0x90 : 0x80;
    const int high = lead == 0xF4 ? 0x8F : 0xBF;
    return between(byte(1), low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

TextPlace place_of(std::string_view text, std::size_t offset) {
  TextPlace place;
  for (std::size_t at = 0; at < offset && at < text.size(); ++at) {
    const auto byte = static_cast<std::uint8_t>(text[at]);
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((byte & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

std::string printable(std::string_view text, std::size_t length_max) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (shown.size() + std::max<std::size_t>(length, 1) > length_max) return shown + "...";
    if (const std::size_t control = control_length(text, at); length == 0 || control > 0) {
      shown += '?';
      at += std::max<std::size_t>(control, 1);
    } else {
      shown.append(text.substr(at, length));
      at += length;
    }
  }
  return shown;
}

}  // namespace orrery

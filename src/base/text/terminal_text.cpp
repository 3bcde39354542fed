#include "base/text/terminal_text.hpp"

#include <algorithm>
#include <cstdint>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// Bytes of the valid sequence at `at`; 0: there is none.
std::size_t length_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<std::uint8_t>(text[at]);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const std::string_view sequence = text.substr(at, length);
  return first_invalid_utf8(sequence) == std::string_view::npos ? sequence.size() : 0;
}

/// Returns the code point of one valid sequence, or of a NUL.
std::uint32_t code_point(std::string_view sequence) {
  constexpr std::uint32_t kLeadMasks[] = {0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t code = static_cast<std::uint8_t>(sequence[0]) & kLeadMasks[sequence.size() - 1];
  for (const char c : sequence.substr(1)) code = code << 6 | (static_cast<std::uint8_t>(c) & 0x3F);
  return code;
}

void append_hexadecimal(std::string& out, std::uint32_t number, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[number >> shift & 0xF];
  }
}

void append_u_escape(std::string& out, std::uint32_t code) {
  out += "\\u";
  append_hexadecimal(out, code, 4);
}

/// Appends the escape of a control character, or of one byte that is not UTF-8.
void append_escape(std::string& out, std::string_view character) {
  if (character == "\n" || character == "\t" || character == "\r") {
    out += character == "\n" ? "\\n" : character == "\t" ? "\\t" : "\\r";
  } else if (character.size() == 1) {
    out += "\\x";
    append_hexadecimal(out, static_cast<std::uint8_t>(character[0]), 2);
  } else {
    append_u_escape(out, code_point(character));
  }
}

}  // namespace

std::size_t control_length(std::string_view text, std::size_t at) {
  const std::size_t length = length_at(text, at);
  if (length == 0) return text[at] == '\0' ? 1 : 0;
  const std::uint32_t code = code_point(text.substr(at, length));
  const auto between = [&](std::uint32_t low, std::uint32_t high) {
    return code >= low && code <= high;
  };
  const bool direction = code == 0x061C || between(0x200E, 0x200F) || between(0x202A, 0x202E) ||
                         between(0x2066, 0x2069);
  const bool controls = code < 0x20 || between(0x7F, 0x9F) || between(0x2028, 0x2029) || direction;
  return controls ? length : 0;
}

std::string terminal_text(std::string_view text, Newlines newlines) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t control = control_length(text, at);
    const std::size_t length = std::max(control, length_at(text, at));
    if (text[at] == '\n' && newlines == Newlines::kKept) {
      shown += text[at++];
    } else if (control > 0 || length == 0) {
      const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
      append_escape(shown, character);
      at += character.size();
    } else {
      shown.append(text.substr(at, length));
      at += length;
    }
  }
  return shown;
}

std::string terminal_json(std::string_view json) {
  std::string shown;
  shown.reserve(json.size());
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t control = control_length(json, at);
    if (control == 0 || json[at] == '\n') {
      shown += json[at++];
      continue;
    }
    append_u_escape(shown, code_point(json.substr(at, control)));
    at += control;
  }
  return shown;
}

}  // namespace orrery

#include "tokens/text/lossy_text.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

struct Sequence {
  std::size_t size = 0;   ///< bytes of the sequence, or of its longest good part
  bool complete = false;  ///< it is a character
  bool cut = false;       ///< the text ends within it
};

/// Bounds of the second byte behind a lead byte (Unicode 15, table 3-7).
std::pair<unsigned char, unsigned char> second_bounds(unsigned char lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i >= text.size()) return {i, false, true};
    const auto [low, high] =
        i == 1 ? second_bounds(lead) : std::pair<unsigned char, unsigned char>{0x80, 0xBF};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
  }
  return {size, true, false};
}

}  // namespace

void LossyText::add(std::string_view bytes, std::string& to) {
  if (held_.empty() && std::ranges::all_of(bytes, [](char c) { return (c & 0x80) == 0; })) {
    to += bytes;
    return;
  }
  const std::string text = held_ + std::string(bytes);
  held_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Sequence next = sequence_at(text, at);
    if (next.cut) {
      held_ = text.substr(at);
      return;
    }
    if (next.complete) {
      to.append(text, at, next.size);
    } else {
      to += kReplacementCharacter;
    }
    at += next.size;
  }
}

void LossyText::finish(std::string& to) {
  if (!held_.empty()) to += kReplacementCharacter;
  held_.clear();
}

}  // namespace orrery

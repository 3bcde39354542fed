#include "inference/engine/text_tail.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct CharacterStart {
  std::size_t size = 0;  ///< bytes of the whole character; 0: no character begins so
  unsigned low = 0x80;   ///< least second byte
  unsigned high = 0xBF;  ///< greatest second byte
};

// The table of well-formed UTF-8 (Unicode 15, table 3-7).
CharacterStart start_of(unsigned byte) {
  if (byte < 0x80) return {.size = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.size = 2};
  if (byte == 0xE0) return {.size = 3, .low = 0xA0};
  if (byte == 0xED) return {.size = 3, .high = 0x9F};
  if (byte < 0xF0) return {.size = 3};
  if (byte == 0xF0) return {.size = 4, .low = 0x90};
  if (byte == 0xF4) return {.size = 4, .high = 0x8F};
  if (byte < 0xF5) return {.size = 4};
  return {};
}

/// The part of a character at the front of a text.
struct Character {
  std::size_t bytes = 1;  ///< that belong together
  enum class Form : std::uint8_t { kWhole, kPart, kMalformed } form = Form::kMalformed;
};

Character first_character(std::string_view text) {
  using enum Character::Form;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const CharacterStart start = start_of(byte(0));
  if (start.size == 0) return {};
  for (std::size_t i = 1; i < start.size; ++i) {
    if (i == text.size()) return {.bytes = i, .form = kPart};
    const unsigned low = i == 1 ? start.low : 0x80;
    const unsigned high = i == 1 ? start.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {.bytes = i};
  }
  return {.bytes = start.size, .form = kWhole};
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character next = first_character(bytes);
    text += next.form == Character::Form::kWhole ? bytes.substr(0, next.bytes) : kReplacement;
    bytes.remove_prefix(next.bytes);
  }
  return text;
}

std::size_t incomplete_utf8(std::string_view bytes) {
  for (std::size_t size = 1; size <= 3 && size <= bytes.size(); ++size) {
    const Character last = first_character(bytes.substr(bytes.size() - size));
    if (last.form == Character::Form::kPart && last.bytes == size) return size;
  }
  return 0;
}

TextTail::TextTail(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::size_t TextTail::held_for_stops() const {
  std::size_t held = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, pending_.size()); size > held; --size) {
      if (pending_.ends_with(std::string_view(stop).substr(0, size))) held = size;
    }
  }
  return held;
}

std::string TextTail::take(std::string_view bytes) {
  if (stopped_) return {};
  pending_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    pending_.resize(end);
    return finish();
  }
  end = pending_.size() - held_for_stops();
  end -= incomplete_utf8(std::string_view(pending_).substr(0, end));
  std::string text = valid_utf8(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
  return text;
}

std::string TextTail::finish() { return valid_utf8(std::exchange(pending_, {})); }

}  // namespace orrery

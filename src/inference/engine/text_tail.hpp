// inference/engine/text_tail.hpp - turns the bytes of generated tokens into text that can be sent:
// valid UTF-8, up to the first stop string.
//
// One per sequence, used by the thread of its engine. Bytes are held back while they may be the
// beginning of a stop string or of a character. Bytes that are no UTF-8 become U+FFFD, one for each
// maximal part of a character (Unicode 15, section 3.9). Invariant: what all calls returned is the
// text without held back bytes, whatever the tokens' borders. Cost: O(held and new bytes x stop
// strings).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

class TextTail {
 public:
  /// Empty stop strings are ignored.
  explicit TextTail(std::vector<std::string> stops);

  /// Takes the bytes of a token; returns the text that is certain now.
  [[nodiscard]] std::string take(std::string_view bytes);
  /// Whether a stop string has appeared. It and all behind it are dropped.
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Returns what is held back, at the end of the text.
  [[nodiscard]] std::string finish();

 private:
  [[nodiscard]] std::size_t held_for_stops() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

/// Returns the text with U+FFFD for bytes that are no UTF-8. O(size).
[[nodiscard]] std::string valid_utf8(std::string_view bytes);

/// Returns how many bytes at the end begin a character that is not complete: 0 to 3.
[[nodiscard]] std::size_t incomplete_utf8(std::string_view bytes);

}  // namespace orrery

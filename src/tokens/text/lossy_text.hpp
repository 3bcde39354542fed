// tokens/text/lossy_text.hpp - bytes that arrive in parts as UTF-8, with U+FFFD for what is none.
//
// A value, used by one thread. Invariant: each longest part of a sequence that cannot go on becomes
// one U+FFFD (Unicode 15, section 3.9, "U+FFFD substitution of maximal subparts"); how the bytes
// are cut makes no difference. Cost: O(bytes); at most 3 bytes are held.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

class LossyText {
 public:
  /// Appends what is certain of the bytes so far to `to`.
  void add(std::string_view bytes, std::string& to);
  /// Ends the text: a sequence that is not complete becomes U+FFFD.
  void finish(std::string& to);

 private:
  std::string held_;
};

}  // namespace orrery

// tokens/token_joiner.hpp - the text of tokens that arrive one after the other.
//
// Made for one text, used by one thread; borrows its tokenizer. Invariant: the joined text is that
// of decoding all tokens at once: bytes that may still become a character, and runs of byte tokens,
// are held back until the text or the run goes on or ends. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokens/text/lossy_text.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

class TokenJoiner {
 public:
  TokenJoiner(const Tokenizer& tokenizer, TokenUse::Special special)
      : tokenizer_(tokenizer), special_(special), rules_(tokenizer.text_rules()) {}

  /// Appends the text that a token completes.
  void add(std::int32_t token, std::string& to);
  /// Ends the text.
  void finish(std::string& to);

 private:
  void end_run(std::string& to);
  /// Appends text but for the characters that are stripped from the front.
  void append(std::string_view text, std::string& to);

  const Tokenizer& tokenizer_;
  TokenUse::Special special_;
  TextRules rules_;
  bool begun_ = false;
  bool stripping_ = true;
  std::size_t stripped_ = 0;
  std::string run_;
  LossyText text_;
};

}  // namespace orrery

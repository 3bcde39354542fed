// tokens/incremental_decoder.hpp - the text of an answer, token by token, up to a stop string.
//
// Made for one answer, used by one thread; borrows its tokenizer. Invariants: 1. The parts, joined,
// are the text of all tokens up to the first stop string, which is left out. 2. No part is taken
// back: bytes that may still become a character, runs of byte tokens and a tail that may begin a
// stop string are held. 3. Each part is UTF-8. Cost: O(bytes), times the stop strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/token_joiner.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

class IncrementalDecoder {
 public:
  struct Options {
    std::vector<std::string> stops;  ///< empty ones never stop
    TokenUse::Special special = TokenUse::Special::kLeftOut;
  };

  IncrementalDecoder(const Tokenizer& tokenizer, Options options);

  /// Returns the text that a token completes; "" once a stop string has come.
  [[nodiscard]] std::string add(std::int32_t token);
  /// Ends the answer and returns the text that was held. A stop string may come in it.
  [[nodiscard]] std::string finish();
  /// The stop string that was complete first; of several, the longest.
  [[nodiscard]] const std::optional<std::string>& stop() const { return stop_; }

 private:
  enum class End : std::uint8_t { kOpen, kFinal };

  [[nodiscard]] std::string release(End end);

  TokenJoiner joiner_;
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> stop_;
};

}  // namespace orrery

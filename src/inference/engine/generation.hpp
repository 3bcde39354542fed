// inference/engine/generation.hpp - what an engine is asked to generate, and what it returns.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/trainer/generate.hpp"

namespace orrery {

/// Names a request for the life of an engine.
enum class GenerationId : std::uint64_t { kNone = 0 };

struct GenerationRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token
  /// Tokens that were generated before, perhaps elsewhere, by the same request: the text goes on
  /// behind them, and they count as generated. They must not end it.
  std::vector<std::int32_t> continued = {};
  /// `tokens` is a limit of all that is generated: the text also ends where the context is full. A
  /// temperature of 0 takes the highest score.
  GenerateOptions sampling;
  std::vector<std::string> stops;  ///< the text ends before the first of these
  std::vector<std::int32_t> ends;  ///< tokens that end the text
};

enum class FinishReason : std::uint8_t {
  kNone,    ///< the text goes on
  kStop,    ///< a stop string, or a token that ends the text
  kLength,  ///< the limit of tokens, or the context is full
};

/// What one step added to a text.
struct GenerationDelta {
  GenerationId id = GenerationId::kNone;
  std::int32_t token = 0;
  std::string text;  ///< valid UTF-8; may be empty while bytes are held back
  FinishReason finish = FinishReason::kNone;
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  ///< tokens of the prompt whose keys and values were found
  std::size_t tokens = 0;         ///< generated so far, continued ones included
};

}  // namespace orrery

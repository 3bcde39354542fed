// inference/server/completion_request.hpp - reads the JSON of POST /v1/completions and POST
// /v1/chat/completions.
//
// Plain values and pure functions. Each parameter has an effect or is refused by name, except those
// that only describe the caller (user, metadata, store, service_tier). The models of orrery-train
// have no chat template, so a chat is the contents of its messages, each followed by a newline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inference/engine/generation.hpp"
#include "inference/server/api_error.hpp"

namespace orrery {

enum class CompletionKind : std::uint8_t { kText, kChat };

struct CompletionRequest {
  CompletionKind kind = CompletionKind::kText;
  std::string model;
  std::string text;                        ///< the prompt, unless it is given as tokens
  std::vector<std::int32_t> tokens;        ///< the prompt, unless it is given as text
  std::optional<std::int64_t> tokens_max;  ///< tokens to generate
  std::optional<std::uint64_t> seed;
  GenerateOptions sampling;  ///< without the two above
  std::vector<std::string> stops;
  bool stream = false;
  bool include_usage = false;     ///< a last chunk with the usage
  bool ignore_eos = false;        ///< whether the token that ends a text is a token like others
  bool return_token_ids = false;  ///< whether choices have `token_ids`, as in vLLM
};

/// Errors: malformed JSON, with line and column; a parameter of a wrong type or value, by name.
[[nodiscard]] ApiResult<CompletionRequest> parse_completion(CompletionKind kind,
                                                            std::string_view body);

}  // namespace orrery

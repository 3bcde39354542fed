// inference/request/completion_request.hpp - reads the JSON of POST /v1/completions and POST
// /v1/chat/completions.
//
// Plain values and pure functions. Each parameter has an effect or is refused by name, except those
// that only describe the caller (user, metadata, store, service_tier). Without a chat template, a
// chat is the contents of its messages, each followed by a newline, and tools are refused.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inference/engine/generation.hpp"
#include "inference/request/continued_stream.hpp"
#include "inference/server/api_error.hpp"

namespace orrery {

enum class CompletionKind : std::uint8_t { kText, kChat };

/// Who writes a conversation as a prompt.
enum class ChatForm : std::uint8_t {
  kLines,     ///< this module: the contents of the messages
  kTemplate,  ///< the model's chat template
};

/// What is continued, in the form in which it was given.
struct CompletionPrompt {
  std::string text;                  ///< unless tokens are given, or messages for a template
  std::vector<std::int32_t> tokens;  ///< none: text is given
  nlohmann::ordered_json messages;   ///< of a chat for a template, contents as texts
  nlohmann::ordered_json tools;      ///< of a chat for a template; null: none
};

struct CompletionRequest {
  CompletionKind kind = CompletionKind::kText;
  std::string model;
  CompletionPrompt prompt;
  std::optional<std::int64_t> tokens_max;  ///< tokens to generate
  std::optional<std::uint64_t> seed;
  GenerateOptions sampling;  ///< without the two above
  std::vector<std::string> stops;
  bool stream = false;
  bool include_usage = false;     ///< a last chunk with the usage
  bool ignore_eos = false;        ///< whether the token that ends a text is a token like others
  bool return_token_ids = false;  ///< whether choices have `token_ids`, as in vLLM
  ContinuedStream so_far;         ///< tokens: of a stream whose rest is asked for

  [[nodiscard]] bool continues() const { return !so_far.tokens.empty(); }
};

/// Errors: malformed JSON, with line and column; a parameter of a wrong type or value, by name.
[[nodiscard]] ApiResult<CompletionRequest> parse_completion(CompletionKind kind, ChatForm form,
                                                            std::string_view body);

}  // namespace orrery

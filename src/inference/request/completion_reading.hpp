// inference/request/completion_reading.hpp - from the body of a request to what an engine
// generates: parsed, rendered by the chat template, tokenised and checked.
//
// read_completion() is pure. A CompletionReader is owned by a CompletionServer and used on its
// loop; it reads on a thread of its own, one body after the other, so that long prompts do not hold
// up the streams that the loop sends. `done` comes on the loop, and never after the reader's end,
// which waits for the body that is being read. A prompt whose bytes alone show that it does not fit
// the context is not tokenised. Cost: O(bytes) to parse, and the tokenizer's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/env.hpp"
#include "base/threads/side_thread.hpp"
#include "inference/engine/generation.hpp"
#include "inference/engine/served_model.hpp"
#include "inference/request/completion_request.hpp"
#include "inference/server/api_error.hpp"

namespace orrery {

/// What a body is read for.
struct ReadingTerms {
  std::shared_ptr<const ServedModel> model;
  std::string name;      ///< by which the model is served
  std::int64_t now = 0;  ///< seconds since 1970
};

/// A request that can be served.
struct ReadCompletion {
  CompletionRequest request;     ///< without its prompt and stops
  GenerationRequest generation;  ///< its seed is that of the request, if it has one
};

/// Errors: those of parse_completion(), another model, a chat that the template refuses, a prompt
/// without tokens or that the context does not hold.
[[nodiscard]] ApiResult<ReadCompletion> read_completion(const ReadingTerms& terms,
                                                        CompletionKind kind, std::string_view body);

class CompletionReader {
 public:
  using Done = std::function<void(ApiResult<ReadCompletion>)>;

  /// `inbox` outlives it.
  explicit CompletionReader(Inbox& inbox);

  /// `body` lives until `done` comes or this ends.
  void read(ReadingTerms terms, CompletionKind kind, std::string_view body, Done done);

 private:
  Inbox& inbox_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  SideThread thread_;
};

}  // namespace orrery

// gateway/request_facts.hpp - what a gateway reads of the JSON body of a request to a model.
//
// simdjson walks the body on demand; values that are not asked for are skipped, and left to the
// inference engine to check. A RequestReader keeps its memory from one body to the next. No
// exceptions. Cost: about 1 GB of body a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "serving/admission/fair_queue.hpp"

namespace orrery {

enum class AnswerForm : std::uint8_t { kWhole, kStream };

/// Where the prompt stands in a body: the value of "messages" or "prompt".
struct PromptPlace {
  std::size_t at = 0;
  std::size_t size = 0;    ///< 0: it is absent, or neither a list nor a text
  std::uint64_t salt = 0;  ///< of "tools" and "cache_salt", with which other prompts share nothing
};

struct RequestFacts {
  std::string model;
  AnswerForm form = AnswerForm::kWhole;  ///< "stream"
  std::uint64_t output_tokens_max = 0;   ///< "max_completion_tokens", "max_tokens"; 0: absent
  bool include_usage = false;            ///< "stream_options"
  /// Asks for several answers, or for what only who computes the prompt knows of it: "n",
  /// "best_of", "use_beam_search", "echo", "prompt_logprobs".
  bool needs_one_replica = false;
  /// "service_tier": "flex" is batch, all others (auto, default, priority) and none interactive.
  ServiceClass service_class = ServiceClass::kInteractive;
  PromptPlace prompt;
};

/// What is wrong with a body, and with which of its fields.
struct RequestFault {
  std::string message;
  const char* param = "";  ///< empty: none
};

class RequestReader {
 public:
  RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;
  ~RequestReader();

  /// Faults: the body is no JSON object (the message names line and column), model is missing or
  /// empty, a field has another type.
  [[nodiscard]] tl::expected<RequestFacts, RequestFault> read(const std::string& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery

#include "inference/server/completion_reply.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEnd = "data: [DONE]\n\n";

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event_of(const Json& json) { return "data: " + text_of(json) + "\n\n"; }

Json reason_of(FinishReason finish) {
  switch (finish) {
    case FinishReason::kNone:
      return nullptr;
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
  }
  return nullptr;
}

Json usage_of(const GenerationDelta& last) {
  return {{"prompt_tokens", last.prompt_tokens},
          {"completion_tokens", last.tokens},
          {"total_tokens", last.prompt_tokens + last.tokens},
          {"prompt_tokens_details", {{"cached_tokens", last.cached_tokens}}}};
}

std::string_view object_of(CompletionKind kind, std::string_view chat) {
  return kind == CompletionKind::kText ? "text_completion" : chat;
}

Json head_of(const CompletionIdentity& identity, std::string_view object) {
  return {{"id", identity.id},
          {"object", object},
          {"created", identity.created},
          {"model", identity.model}};
}

}  // namespace

CompletionReply::CompletionReply(CompletionIdentity identity, const CompletionRequest& request,
                                 CompletionMarks marks)
    : identity_(std::move(identity)),
      kind_(request.kind),
      stream_(request.stream),
      include_usage_(request.include_usage),
      return_token_ids_(request.return_token_ids),
      marks_(std::move(marks)),
      phase_(request.continues() ? Phase::kBegun : Phase::kNew) {}

std::string CompletionReply::take(const GenerationDelta& delta) {
  last_ = delta;
  if (return_token_ids_) tokens_.push_back(delta.token);
  if (marks_.wanted == CompletionMarks::Wanted::kYes) unmarked_.push_back(delta.token);
  if (stream_) return events_of(delta);
  text_ += delta.text;
  return {};
}

/// Returns the lines that stand before the next event with tokens.
std::string CompletionReply::take_marks() {
  if (marks_.wanted == CompletionMarks::Wanted::kNo) return {};
  const std::string tokens = token_mark(std::exchange(unmarked_, {})) + '\n';
  return phase_ == Phase::kNew ? first_mark(marks_.origin) + '\n' + tokens : tokens;
}

std::string CompletionReply::events_of(const GenerationDelta& delta) {
  const bool ends = delta.finish != FinishReason::kNone;
  if (delta.text.empty() && tokens_.empty() && !ends && phase_ == Phase::kBegun) return {};
  Json choice{{"index", 0}};
  if (kind_ == CompletionKind::kText) {
    choice["text"] = delta.text;
  } else {
    choice["delta"] = Json::object();
    if (phase_ == Phase::kNew) choice["delta"]["role"] = "assistant";
    if (!delta.text.empty() || phase_ == Phase::kNew) choice["delta"]["content"] = delta.text;
  }
  std::string events = take_marks();
  phase_ = Phase::kBegun;
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = reason_of(delta.finish);
  if (return_token_ids_) choice["token_ids"] = std::exchange(tokens_, {});
  Json event = head_of(identity_, object_of(kind_, "chat.completion.chunk"));
  event["choices"] = Json::array({choice});
  if (include_usage_) event["usage"] = nullptr;
  events += event_of(event);
  if (!ends) return events;
  return events + rest(delta);
}

std::string CompletionReply::rest(const GenerationDelta& last) const {
  if (!include_usage_ || marks_.origin.usage == ContinuedStream::Usage::kSent) {
    return std::string(kEnd);
  }
  Json event = head_of(identity_, object_of(kind_, "chat.completion.chunk"));
  event["choices"] = Json::array();
  event["usage"] = usage_of(last);
  const bool marked = marks_.wanted == CompletionMarks::Wanted::kYes;
  return (marked ? usage_mark() + '\n' : "") + event_of(event).append(kEnd);
}

std::string CompletionReply::whole() const {
  Json choice{{"index", 0}};
  if (kind_ == CompletionKind::kText) {
    choice["text"] = text_;
  } else {
    choice["message"] = {{"role", "assistant"}, {"content", text_}, {"refusal", nullptr}};
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = reason_of(last_.finish);
  if (return_token_ids_) choice["token_ids"] = tokens_;
  Json answer = head_of(identity_, object_of(kind_, "chat.completion"));
  answer["choices"] = Json::array({choice});
  answer["usage"] = usage_of(last_);
  return text_of(answer);
}

}  // namespace orrery

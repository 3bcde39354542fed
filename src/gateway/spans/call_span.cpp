#include "gateway/spans/call_span.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// The list of attributes of a span. Whole numbers are texts in OTLP's JSON.
class Attributes {
 public:
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) add(key, {{"stringValue", value}});
  }
  void number(std::string_view key, std::uint64_t value) {
    add(key, {{"intValue", fmt::format("{}", value)}});
  }
  void real(std::string_view key, double value) { add(key, {{"doubleValue", value}}); }
  [[nodiscard]] Json take() { return std::move(list_); }

 private:
  void add(std::string_view key, Json value) {
    list_.push_back({{"key", key}, {"value", std::move(value)}});
  }
  Json list_ = Json::array();
};

Json attributes_of(const CallSpan& span) {
  Attributes made;
  made.text("gen_ai.operation.name", span.asked.operation);
  made.text("gen_ai.provider.name", "orrery");
  made.text("gen_ai.request.model", span.asked.model);
  if (span.asked.max_tokens > 0) made.number("gen_ai.request.max_tokens", span.asked.max_tokens);
  if (span.answered.input_tokens + span.answered.output_tokens > 0) {
    made.number("gen_ai.usage.input_tokens", span.answered.input_tokens);
    made.number("gen_ai.usage.output_tokens", span.answered.output_tokens);
  }
  if (span.answered.status > 0) {
    made.number("http.response.status_code", static_cast<std::uint64_t>(span.answered.status));
  }
  if (span.answered.outcome != "completed") made.text("error.type", span.answered.outcome);
  made.text("orrery.service", span.asked.service);
  made.text("orrery.tenant", span.asked.tenant);
  made.text("orrery.request", span.asked.request);
  made.text("orrery.replica", span.answered.endpoint);
  if (span.answered.ttft_s > 0) made.real("orrery.time_to_first_token_s", span.answered.ttft_s);
  if (span.answered.failures > 0) made.number("orrery.failed_replicas", span.answered.failures);
  return made.take();
}

std::string nanoseconds_text(Instant time) {
  return fmt::format("{}", (time - Instant()).count_ns());
}

Json span_json(const CallSpan& span) {
  constexpr int kServer = 2;
  constexpr int kError = 2;
  Json json = {{"traceId", span.own.trace}, {"spanId", span.own.span}};
  if (!span.parent.empty()) json["parentSpanId"] = span.parent;
  json["name"] = fmt::format("{} {}", span.asked.operation, span.asked.model);
  json["kind"] = kServer;
  json["startTimeUnixNano"] = nanoseconds_text(span.start);
  json["endTimeUnixNano"] = nanoseconds_text(span.end);
  json["attributes"] = attributes_of(span);
  if (span.answered.outcome == "failed") json["status"] = {{"code", kError}};
  return json;
}

}  // namespace

std::string otlp_json(std::span<const CallSpan> spans, std::string_view gateway) {
  Attributes resource;
  resource.text("service.name", "orrery-gateway");
  resource.text("service.instance.id", gateway);
  Json list = Json::array();
  for (const CallSpan& each : spans) list.push_back(span_json(each));
  const Json scope = {{"scope", {{"name", "orrery.gateway"}}}, {"spans", std::move(list)}};
  const Json json = {
      {"resourceSpans", Json::array({{{"resource", {{"attributes", resource.take()}}},
                                      {"scopeSpans", Json::array({scope})}}})}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string_view operation_of(std::string_view path) {
  if (path == "/v1/chat/completions") return "chat";
  if (path == "/v1/completions") return "text_completion";
  return path == "/v1/embeddings" ? "embeddings" : "";
}

}  // namespace orrery

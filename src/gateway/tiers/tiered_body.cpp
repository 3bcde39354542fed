#include "gateway/tiers/tiered_body.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kPromptShown = std::size_t{16} << 10;

/// Whether a key is absent, null, or the value that means the same.
bool is_plain(const Json& body, std::string_view key, const Json& plain) {
  const auto found = body.find(key);
  return found == body.end() || found->is_null() || *found == plain;
}

bool has_one_text_answer(const Json& body) {
  const std::array<std::pair<std::string_view, Json>, 12> plain{{{"n", 1},
                                                                 {"best_of", 1},
                                                                 {"logprobs", false},
                                                                 {"top_logprobs", 0},
                                                                 {"echo", false},
                                                                 {"suffix", ""},
                                                                 {"tools", Json::array()},
                                                                 {"functions", Json::array()},
                                                                 {"modalities", Json{"text"}},
                                                                 {"audio", Json()},
                                                                 {"tool_choice", "none"},
                                                                 {"function_call", "none"}}};
  for (const auto& [key, value] : plain) {
    if (!is_plain(body, key, value)) return false;
  }
  return is_plain(body, "response_format", {{"type", "text"}});
}

/// The text of a message; nothing: it has parts that are no text.
std::optional<std::string> message_text(const Json& message) {
  if (!message.is_object() || message.contains("tool_calls")) return std::nullopt;
  const auto content = message.find("content");
  if (content == message.end()) return std::nullopt;
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return std::nullopt;
  std::string text;
  for (const Json& part : *content) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    if (found == part.end() || !found->is_string()) return std::nullopt;
    text += found->get<std::string>();
  }
  return text;
}

/// The prompt and the number of its messages; nothing: it is no text.
std::optional<std::pair<std::string, std::size_t>> prompt_of(const Json& body) {
  const auto prompt = body.find("prompt");
  if (prompt != body.end()) {
    if (!prompt->is_string()) return std::nullopt;
    return std::pair(prompt->get<std::string>(), std::size_t{1});
  }
  const auto messages = body.find("messages");
  if (messages == body.end() || !messages->is_array()) return std::nullopt;
  std::string all;
  for (const Json& message : *messages) {
    const auto text = message_text(message);
    if (!text) return std::nullopt;
    if (!all.empty()) all += '\n';
    all += *text;
  }
  return std::pair(std::move(all), messages->size());
}

double output_limit(const Json& body) {
  for (const char* key : {"max_completion_tokens", "max_tokens"}) {
    const auto found = body.find(key);
    if (found != body.end() && found->is_number_unsigned()) return found->get<double>();
  }
  return 0;
}

TierFeatures features_of(std::string_view prompt, std::size_t messages, double limit) {
  std::array<std::size_t, 5> counts{};  // digits, code, beyond ASCII, line ends, spaces
  for (const char c : prompt) {
    constexpr std::string_view kCode = "{}()[];=<>+*/\\_#$&|";
    counts[0] += c >= '0' && c <= '9' ? 1 : 0;
    counts[1] += kCode.find(c) != kCode.npos ? 1 : 0;
    counts[2] += static_cast<unsigned char>(c) >= 0x80 ? 1 : 0;
    counts[3] += c == '\n' ? 1 : 0;
    counts[4] += c == ' ' || c == '\n' ? 1 : 0;
  }
  const double size = std::max(static_cast<double>(prompt.size()), 1.0);
  const auto share = [&](std::size_t at) { return static_cast<double>(counts[at]) / size; };
  return {std::log1p(static_cast<double>(prompt.size())),
          std::log1p(limit),
          std::log1p(static_cast<double>(messages)),
          share(0),
          share(1),
          share(2),
          share(3),
          size / static_cast<double>(counts[4] + 1)};
}

/// The text of the first choice of an answer or an event; nothing: it has something else.
std::optional<std::string> choice_text(const Json& object) {
  if (!object.is_object() || object.contains("error")) return std::nullopt;
  const auto choices = object.find("choices");
  if (choices == object.end() || !choices->is_array()) return std::nullopt;
  if (choices->empty()) return "";  // an event with the usage alone
  const Json& choice = choices->front();
  if (!choice.is_object()) return std::nullopt;
  for (const char* key : {"message", "delta"}) {
    const auto found = choice.find(key);
    if (found == choice.end() || !found->is_object()) continue;
    const auto tools = found->find("tool_calls");
    if (tools != found->end() && !tools->is_null() && !tools->empty()) return std::nullopt;
    const auto content = found->find("content");
    return content != found->end() && content->is_string() ? content->get<std::string>() : "";
  }
  const auto text = choice.find("text");
  return text != choice.end() && text->is_string() ? std::optional(text->get<std::string>())
                                                   : std::nullopt;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::optional<TieredBody> TieredBody::read(const WebRequest& request) {
  TieredBody read;
  // Both models are asked with copies of the body, which is read and written on the loop's thread.
  constexpr std::size_t kBodyMax = std::size_t{256} << 10;
  if (request.body.size() > kBodyMax) return std::nullopt;
  read.path_ = request.path();
  if (read.path_ != "/v1/chat/completions" && read.path_ != "/v1/completions") return std::nullopt;
  // Writing a body anew needs stack for each level of it.
  constexpr int kDepthMax = 64;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDepthMax;
    return !deep;
  };
  read.body_ = Json::parse(request.body, watch, false);
  if (deep || !read.body_.is_object() || !has_one_text_answer(read.body_)) return std::nullopt;
  auto prompt = prompt_of(read.body_);
  if (!prompt) return std::nullopt;
  read.features_ = features_of(prompt->first, prompt->second, output_limit(read.body_));
  read.prompt_ = std::move(prompt->first);
  if (read.prompt_.size() > kPromptShown) {
    read.prompt_.erase(0, read.prompt_.size() - kPromptShown);
  }
  return read;
}

std::string TieredBody::for_model(std::string_view model) const {
  Json body = body_;
  body["model"] = model;
  return dumped(body);
}

std::string TieredBody::for_comparison(std::string_view model) const {
  Json body = body_;
  body["model"] = model;
  body.erase("stream");
  body.erase("stream_options");
  return dumped(body);
}

std::optional<std::string> answer_text(std::string_view answer) {
  const std::size_t first = answer.find_first_not_of(" \r\n\t");
  if (first == answer.npos) return std::nullopt;
  if (answer[first] == '{') return choice_text(Json::parse(answer, nullptr, false));
  std::string text;
  bool done = false;
  for (std::size_t at = 0; at < answer.size();) {
    const std::size_t end = std::min(answer.find('\n', at), answer.size());
    std::string_view line = answer.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    constexpr std::string_view kData = "data:";
    if (!line.starts_with(kData)) continue;
    line.remove_prefix(kData.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    done = line == "[DONE]";
    if (done) break;
    const auto piece = choice_text(Json::parse(line, nullptr, false));
    if (!piece) return std::nullopt;
    text += *piece;
  }
  return done ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace orrery

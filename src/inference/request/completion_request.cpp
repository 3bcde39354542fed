#include "inference/request/completion_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;  // a template shows objects in the order of their keys

constexpr std::size_t kStopsMax = 16;
constexpr std::size_t kShownMax = 60;

tl::unexpected<ApiError> wrong(std::string param, std::string message, std::string code = {}) {
  return tl::unexpected(
      ApiError{.message = std::move(message), .param = std::move(param), .code = std::move(code)});
}

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShownMax);
}

tl::unexpected<ApiError> expected(const std::string& param, std::string_view what,
                                  const Json& value) {
  return wrong(param, fmt::format("{}: expected {}, found {}", param, what, shown(value)),
               "invalid_value");
}

/// Reads the parameters of one body, in any order; keeps the first error.
class ParameterReader {
 public:
  explicit ParameterReader(const Json& body) : body_(body) {}

  /// Returns the value; nullptr where it is absent, null, or an error came before.
  [[nodiscard]] const Json* find(const std::string& name) const {
    if (!status_) return nullptr;
    const auto found = body_.find(name);
    return found == body_.end() || found->is_null() ? nullptr : &*found;
  }
  void fail(tl::unexpected<ApiError> error) {
    if (status_) status_ = std::move(error);
  }

  void read(const std::string& name, bool& to) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(expected(name, "true or false", *value));
    to = value->get<bool>();
  }
  void read(const std::string& name, std::string& to) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(expected(name, "a string", *value));
    to = value->get<std::string>();
  }

  struct Numbers {
    double low = 0;
    double high = 0;
  };
  void read(const std::string& name, const Numbers& range, double& to) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!value->is_number() || !(number >= range.low && number <= range.high)) {
      return fail(
          expected(name, fmt::format("a number from {} to {}", range.low, range.high), *value));
    }
    to = number;
  }
  /// Whole numbers from `low`.
  [[nodiscard]] std::optional<std::int64_t> whole(const std::string& name, std::int64_t low) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
    const bool fits = value->is_number_unsigned()
                          ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(kHigh)
                          : value->is_number_integer();
    if (!fits || value->get<std::int64_t>() < low) {
      fail(expected(name, fmt::format("a whole number from {}", low), *value));
      return std::nullopt;
    }
    return value->get<std::int64_t>();
  }

  [[nodiscard]] ApiResult<void>& status() { return status_; }

 private:
  const Json& body_;
  ApiResult<void> status_;
};

/// A parameter that is accepted only with the value that changes nothing.
struct FixedParameter {
  std::string_view name;
  std::string_view value;  ///< JSON
};
constexpr std::array kFixed{FixedParameter{"n", "1"},
                            FixedParameter{"best_of", "1"},
                            FixedParameter{"echo", "false"},
                            FixedParameter{"logprobs", "false"},
                            FixedParameter{"top_logprobs", "0"},
                            FixedParameter{"suffix", "\"\""},
                            FixedParameter{"presence_penalty", "0"},
                            FixedParameter{"frequency_penalty", "0"},
                            FixedParameter{"repetition_penalty", "1"},
                            FixedParameter{"min_p", "0"},
                            FixedParameter{"min_tokens", "0"},
                            FixedParameter{"logit_bias", "{}"},
                            FixedParameter{"tools", "[]"},
                            FixedParameter{"tool_choice", "\"none\""},
                            FixedParameter{"functions", "[]"},
                            FixedParameter{"response_format", R"({"type": "text"})"},
                            FixedParameter{"modalities", R"(["text"])"}};
constexpr std::array<std::string_view, 4> kDescribing{"user", "metadata", "store", "service_tier"};
constexpr std::array<std::string_view, 13> kRead{
    "model",  "prompt",         "messages",  "max_tokens",  "max_completion_tokens",
    "stream", "stream_options", "stop",      "temperature", "top_p",
    "top_k",  "seed",           "ignore_eos"};

/// What decides which parameters there are.
struct CompletionForm {
  CompletionKind kind = CompletionKind::kText;
  ChatForm chat = ChatForm::kLines;

  [[nodiscard]] bool uses_template() const {
    return kind == CompletionKind::kChat && chat == ChatForm::kTemplate;
  }
};

bool is_read(std::string_view name, CompletionForm form) {
  if (name == "prompt") return form.kind == CompletionKind::kText;
  if (name == "messages" || name == "max_completion_tokens") {
    return form.kind == CompletionKind::kChat;
  }
  if (name == "tools" || name == "tool_choice") return form.uses_template();
  return name == "return_token_ids" || name == "continue" ||
         std::ranges::find(kRead, name) != kRead.end() ||
         std::ranges::find(kDescribing, name) != kDescribing.end();
}

ApiResult<void> check_names(const Json& body, CompletionForm form) {
  for (const auto& [name, value] : body.items()) {
    if (value.is_null() || is_read(name, form)) continue;
    const auto fixed = std::ranges::find(kFixed, name, &FixedParameter::name);
    if (fixed == kFixed.end()) {
      return wrong(name, fmt::format("{}: unknown parameter", printable(name, kShownMax)),
                   "unknown_parameter");
    }
    if (value == Json::parse(fixed->value)) continue;
    return wrong(
        name,
        fmt::format("{}: this server supports only {}, found {}", name, fixed->value, shown(value)),
        "unsupported_value");
  }
  return {};
}

void read_token_prompt(ParameterReader& reader, const Json& prompt, CompletionRequest& request) {
  for (const Json& token : prompt) {
    const bool fits = token.is_number_unsigned() &&
                      token.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) return reader.fail(expected("prompt", "numbers of tokens", token));
    request.prompt.tokens.push_back(token.get<std::int32_t>());
  }
}

void read_prompt(ParameterReader& reader, CompletionRequest& request) {
  const Json* prompt = reader.find("prompt");
  if (prompt == nullptr) {
    return reader.fail(wrong("prompt", "prompt: expected a string or a list of tokens",
                             "missing_required_parameter"));
  }
  const bool one = prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number();
  const Json& value = one ? prompt->front() : *prompt;
  if (value.is_string()) {
    request.prompt.text = value.get<std::string>();
  } else if (value.is_array() && !value.empty() && value.front().is_number()) {
    read_token_prompt(reader, value, request);
  } else {
    reader.fail(expected("prompt", "one string or one list of tokens", *prompt));
  }
}

/// Adds the text of a message: a string, or a list of parts of type text.
void read_content(ParameterReader& reader, const Json& content, const std::string& name,
                  std::string& text) {
  if (content.is_string()) {
    text += content.get<std::string>();
    return;
  }
  if (!content.is_array()) return reader.fail(expected(name, "a string or a list", content));
  for (const Json& part : content) {
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) return reader.fail(expected(name, "parts of type text", part));
    text += part["text"].get<std::string>();
  }
}

/// Returns a message as a template takes it: the parts of its content as one text, all else as it
/// is.
Json message_for_template(ParameterReader& reader, const Json& message, const std::string& name) {
  Json made = message;
  const auto content = made.find("content");
  if (content == made.end() || content->is_null()) return made;
  std::string text;
  read_content(reader, message["content"], name + ".content", text);
  *content = text;
  return made;
}

void read_message(ParameterReader& reader, const Json& message, const std::string& name,
                  CompletionRequest& request) {
  if (!message.contains("content")) {
    return reader.fail(expected(name + ".content", "a string", Json()));
  }
  read_content(reader, message["content"], name + ".content", request.prompt.text);
  request.prompt.text += '\n';
}

void read_messages(ParameterReader& reader, ChatForm form, CompletionRequest& request) {
  const Json* messages = reader.find("messages");
  if (messages == nullptr) {
    return reader.fail(
        wrong("messages", "messages: expected a list of messages", "missing_required_parameter"));
  }
  if (!messages->is_array() || messages->empty()) {
    return reader.fail(expected("messages", "a list of at least one message", *messages));
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string name = fmt::format("messages[{}]", i);
    const Json& message = (*messages)[i];
    if (!message.is_object()) return reader.fail(expected(name, "an object", message));
    if (!message.contains("role") || !message["role"].is_string()) {
      return reader.fail(expected(name + ".role", "a string", message.value("role", Json())));
    }
    if (form == ChatForm::kTemplate) {
      request.prompt.messages.push_back(message_for_template(reader, message, name));
    } else {
      read_message(reader, message, name, request);
    }
  }
}

/// Reads the tools that a template shows to the model. What the model answers stays text.
void read_tools(ParameterReader& reader, CompletionRequest& request) {
  const Json* tools = reader.find("tools");
  if (tools != nullptr && !tools->is_array()) {
    return reader.fail(expected("tools", "a list of tools", *tools));
  }
  const Json* choice = reader.find("tool_choice");
  const Json wanted = choice == nullptr ? Json("auto") : *choice;
  if (wanted != "auto" && wanted != "none") {
    return reader.fail(expected("tool_choice", "\"auto\" or \"none\"", wanted));
  }
  if (tools != nullptr && !tools->empty() && wanted == "auto") request.prompt.tools = *tools;
}

void read_stops(ParameterReader& reader, CompletionRequest& request) {
  const Json* stop = reader.find("stop");
  if (stop == nullptr) return;
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  for (const Json& each : list) {
    if (!each.is_string() || each.get_ref<const std::string&>().empty()) {
      return reader.fail(expected("stop", "strings that are not empty", each));
    }
    request.stops.push_back(each.get<std::string>());
  }
  if (request.stops.size() > kStopsMax) {
    reader.fail(wrong("stop", fmt::format("stop: expected at most {} strings", kStopsMax)));
  }
}

void read_stream(ParameterReader& reader, CompletionRequest& request) {
  reader.read("stream", request.stream);
  const Json* options = reader.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) return reader.fail(expected("stream_options", "an object", *options));
  if (!request.stream) {
    return reader.fail(wrong("stream_options", "stream_options: expected only with stream: true"));
  }
  const auto usage = options->find("include_usage");
  if (usage == options->end() || usage->is_null()) return;
  if (!usage->is_boolean()) {
    return reader.fail(expected("stream_options.include_usage", "true or false", *usage));
  }
  request.include_usage = usage->get<bool>();
}

void read_continued(ParameterReader& reader, CompletionRequest& request) {
  std::string marks;
  reader.read("continue", marks);
  if (marks.empty()) return;
  if (!request.stream) {
    return reader.fail(wrong("continue", "continue: expected only with stream: true"));
  }
  ApiResult<ContinuedStream> stream = read_marks(marks);
  if (!stream) return reader.fail(tl::unexpected(std::move(stream.error())));
  request.so_far = *std::move(stream);
}

void read_sampling(ParameterReader& reader, CompletionRequest& request) {
  reader.read("temperature", {.low = 0, .high = 100}, request.sampling.temperature);
  reader.read("top_p", {.low = 0, .high = 1}, request.sampling.top_p);
  request.sampling.top_k = std::max<std::int64_t>(0, reader.whole("top_k", -1).value_or(0));
  if (const auto seed = reader.whole("seed", std::numeric_limits<std::int64_t>::min())) {
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.tokens_max = reader.whole("max_tokens", 1);
  if (request.kind == CompletionKind::kChat) {
    if (const auto tokens = reader.whole("max_completion_tokens", 1)) request.tokens_max = tokens;
  }
  reader.read("ignore_eos", request.ignore_eos);
  reader.read("return_token_ids", request.return_token_ids);
}

/// Levels of a body. Values are written into messages and templates with a call a level.
constexpr std::size_t kLevelsMax = 128;

bool is_too_deep(std::string_view body) {
  std::size_t level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++level > kLevelsMax) return true;
    } else if (!quoted && (c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return false;
}

ApiResult<Json> parse_json(std::string_view body) {
  if (is_too_deep(body)) {
    return wrong({},
                 fmt::format("the body has more than {} levels of lists and objects", kLevelsMax));
  }
  try {
    Json json = Json::parse(body);
    if (json.is_object()) return json;
  } catch (const Json::exception& error) {
    // What the library says begins with its name for the error in brackets.
    const std::string_view text = error.what();
    return wrong(
        {}, fmt::format("the body is not JSON: {}",
                        printable(text.substr(std::min(text.size(), text.find(']') + 2)), 400)));
  }
  return wrong({}, "the body is not a JSON object");
}

}  // namespace

ApiResult<CompletionRequest> parse_completion(CompletionKind kind, ChatForm form,
                                              std::string_view body) {
  const ApiResult<Json> json = parse_json(body);
  if (!json) return tl::unexpected(json.error());
  if (auto known = check_names(*json, {kind, form}); !known) return tl::unexpected(known.error());
  CompletionRequest request{.kind = kind};
  ParameterReader reader(*json);
  reader.read("model", request.model);
  if (kind == CompletionKind::kText) {
    read_prompt(reader, request);
  } else {
    read_messages(reader, form, request);
    if (form == ChatForm::kTemplate) read_tools(reader, request);
  }
  read_stream(reader, request);
  read_continued(reader, request);
  read_sampling(reader, request);
  read_stops(reader, request);
  if (!reader.status()) return tl::unexpected(reader.status().error());
  return request;
}

}  // namespace orrery

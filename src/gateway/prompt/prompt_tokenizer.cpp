#include "gateway/prompt/prompt_tokenizer.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/format/document.hpp"
#include "tokens/bpe_tokenizer.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;  // a template shows objects in the order of their keys

constexpr std::size_t kConfigMax = std::size_t{64} << 20;
/// Levels of a prompt: values are written into a template with a call a level.
constexpr int kLevelsMax = 128;

/// Parses a text; what is malformed or too deep is discarded.
Json parse(std::string_view text) {
  bool deep = false;
  Json json = Json::parse(
      text,
      [&deep](int depth, Json::parse_event_t, const Json&) {
        deep = deep || depth > kLevelsMax;
        return !deep;
      },
      /*allow_exceptions=*/false);
  return deep ? Json(Json::value_t::discarded) : json;
}

/// The object in a file that may be missing.
Result<nlohmann::json> object_in(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return nlohmann::json::object();
  Result<std::string> text = read_file(path, kConfigMax);
  if (!text) return forward_error(text);
  nlohmann::json object(parse(*text));
  if (!object.is_object()) return input_error({path}, "expected a JSON object");
  return object;
}

bool is_token(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
}

/// Puts the text of a message's content in its place, where that is a list of parts of text; false:
/// it is something else.
bool flatten_content(Json& message) {
  if (!message.is_object()) return false;
  const auto content = message.find("content");
  if (content == message.end() || content->is_null() || content->is_string()) return true;
  if (!content->is_array()) return false;
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text") return false;
    const Json words = part.value("text", Json());
    if (!words.is_string()) return false;
    text += words.get_ref<const std::string&>();
  }
  *content = text;
  return true;
}

}  // namespace

Result<std::shared_ptr<const PromptTokenizer>> PromptTokenizer::open(const std::string& from) {
  if (from == "bytes") {
    return std::make_shared<PromptTokenizer>(std::make_unique<ByteTokenizer>(), std::nullopt);
  }
  Result<BpeTokenizer> opened = BpeTokenizer::open(from + "/tokenizer.json");
  if (!opened) return forward_error(opened);
  Result<nlohmann::json> config = object_in(from + "/tokenizer_config.json");
  if (!config) return forward_error(config);
  Result<std::optional<ModelChat>> chat = read_model_chat(from, *config);
  if (!chat) return forward_error(chat);
  return std::make_shared<PromptTokenizer>(std::make_unique<BpeTokenizer>(*std::move(opened)),
                                           *std::move(chat));
}

std::optional<std::vector<std::int32_t>> PromptTokenizer::tokens_of(std::string_view json,
                                                                    std::int64_t now) const {
  if (json.size() > kJsonMax) return std::nullopt;
  Json value = parse(json);
  const bool one = value.is_array() && value.size() == 1 && value.front().is_string();
  const Json& prompt = one ? value.front() : value;
  TokenList tokens;
  if (prompt.is_string()) {
    tokenizer_->encode_whole(prompt.get_ref<const std::string&>(), tokens);
    return tokens;
  }
  if (!prompt.is_array() || prompt.empty()) return std::nullopt;
  if (prompt.front().is_object()) return chat_tokens(std::move(value), now);
  if (!std::ranges::all_of(prompt, is_token)) return std::nullopt;
  tokens.reserve(prompt.size());
  for (const Json& each : prompt) tokens.push_back(each.get<std::int32_t>());
  return tokens;
}

std::optional<std::vector<std::int32_t>> PromptTokenizer::chat_tokens(Json messages,
                                                                      std::int64_t now) const {
  if (!std::ranges::all_of(messages, flatten_content)) return std::nullopt;
  TokenList tokens;
  if (chat_) {
    const Result<std::string> text = render_chat(*chat_, {std::move(messages), nullptr}, now);
    if (!text) return std::nullopt;
    // A template writes the tokens around a text itself.
    tokenizer_->encode(*text, tokens);
    return tokens;
  }
  std::string text;
  for (const Json& each : messages) {
    const Json content = each.value("content", Json());
    if (!content.is_string()) return std::nullopt;
    text += content.get_ref<const std::string&>() + "\n";
  }
  tokenizer_->encode_whole(text, tokens);
  return tokens;
}

}  // namespace orrery

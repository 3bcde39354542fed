#include "tokens/model_chat.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format/document.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTemplateMax = std::size_t{1} << 20;

Result<ChatTemplate> read_template(const std::filesystem::path& directory,
                                   const nlohmann::json& config) {
  std::error_code failed;
  const std::filesystem::path file = directory / "chat_template.jinja";
  if (std::filesystem::exists(file, failed)) {
    Result<std::string> text = read_file(file.string(), kTemplateMax);
    return text ? ChatTemplate::of(*text, file.string()) : forward_error(text);
  }
  return ChatTemplate::of_config(
      config.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      (directory / "tokenizer_config.json").string(), "default");
}

}  // namespace

Result<std::string> render_chat(const ModelChat& chat, const ChatContents& contents,
                                std::int64_t now) {
  nlohmann::ordered_json variables{{"messages", contents.messages},
                                   {"tools", contents.tools},
                                   {"documents", nullptr},
                                   {"add_generation_prompt", true}};
  if (!chat.bos.empty()) variables["bos_token"] = chat.bos;
  if (!chat.eos.empty()) variables["eos_token"] = chat.eos;
  return chat.chat_template.render({.variables = std::move(variables), .now = now, .limits = {}});
}

std::string configured_token(const nlohmann::json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  const auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

Result<std::optional<ModelChat>> read_model_chat(const std::string& directory,
                                                 const nlohmann::json& config) {
  std::error_code failed;
  const std::filesystem::path path(directory);
  const auto named = config.find("chat_template");
  if (!std::filesystem::exists(path / "chat_template.jinja", failed) &&
      (named == config.end() || named->is_null())) {
    return std::nullopt;
  }
  Result<ChatTemplate> chat = read_template(path, config);
  if (!chat) return forward_error(chat);
  return ModelChat{.chat_template = *std::move(chat),
                   .bos = configured_token(config, "bos_token"),
                   .eos = configured_token(config, "eos_token")};
}

}  // namespace orrery

// tokens/model_chat.hpp - how a model writes a conversation as the text of a prompt: its chat
// template and the tokens that the template names.
//
// Made from the files of a model; movable, immutable. Cost: that of the template, which is bounded.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "tokens/chat_template.hpp"

namespace orrery {

/// How a model writes a conversation as a prompt.
struct ModelChat {
  ChatTemplate chat_template;
  std::string bos;  ///< text of the token that begins a text; "": there is none
  std::string eos;  ///< text of the token that ends one; "": there is none
};

/// What a template shows. Tools may be null: none.
struct ChatContents {
  nlohmann::ordered_json messages;
  nlohmann::ordered_json tools;
};

/// Renders a conversation up to where the assistant's answer begins. `now` is seconds since 1970.
/// Error: what the template raises, or why it cannot render these messages.
[[nodiscard]] Result<std::string> render_chat(const ModelChat& chat, const ChatContents& contents,
                                              std::int64_t now);

/// Returns a token of tokenizer_config.json, which is a text or an object with one; "": none.
[[nodiscard]] std::string configured_token(const nlohmann::json& config, const char* key);

/// Reads the chat template of a directory of Hugging Face, whose tokenizer_config.json is `config`:
/// chat_template.jinja or else "chat_template". Nothing: it has none. Error: it cannot be read.
[[nodiscard]] Result<std::optional<ModelChat>> read_model_chat(const std::string& directory,
                                                               const nlohmann::json& config);

}  // namespace orrery

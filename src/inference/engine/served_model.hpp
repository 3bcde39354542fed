// inference/engine/served_model.hpp - a model that is served, with all that its files say of it.
//
// Made once by a loader (inference/engine/model_files.hpp, inference/formats), then immutable and
// shared by the threads of a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/engine/packed_transformer.hpp"
#include "tokens/chat_template.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

/// How a model writes a conversation as a prompt.
struct ModelChat {
  ChatTemplate chat_template;
  std::string bos;  ///< text of the token that begins a text; "": there is none
  std::string eos;  ///< text of the token that ends one; "": there is none
};

struct ServedModel {
  std::string name;
  std::string origin;  ///< for people: the format and what is known of it
  PackedTransformer model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::int32_t> ends;             ///< tokens that end a text
  std::optional<ModelChat> chat;              ///< nothing: a chat is the contents of its messages
  std::vector<std::string> passed_over = {};  ///< why newer checkpoints were rejected
};

}  // namespace orrery

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
#include "tokens/model_chat.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

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

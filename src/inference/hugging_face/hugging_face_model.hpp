// inference/hugging_face/hugging_face_model.hpp - a model from a directory of Hugging Face:
// config.json, generation_config.json, safetensors, tokenizer.json, tokenizer_config.json,
// chat_template.jinja.
//
// Called once at the start of a server. Blocks on the disk. Cost: one pass over the weights.
#pragma once

#include "base/error.hpp"
#include "inference/engine/model_files.hpp"

namespace orrery {

/// Loads the directory `asked.checkpoint`. Errors name the file: one that is missing or malformed,
/// a model that is not served, a tokenizer of another model.
[[nodiscard]] Result<ServedModel> load_hugging_face_model(const ModelFiles& asked);

}  // namespace orrery

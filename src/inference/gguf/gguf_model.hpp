// inference/gguf/gguf_model.hpp - a model from a GGUF file whose architecture is llama.
//
// Called once at the start of a server. Blocks on the disk. Cost: one pass over the weights.
#pragma once

#include "base/error.hpp"
#include "inference/engine/model_files.hpp"

namespace orrery {

/// Loads `files.checkpoint`. Errors name the file and what in it is malformed or not served.
[[nodiscard]] Result<ServedModel> load_gguf_model(const ModelFiles& files);

}  // namespace orrery

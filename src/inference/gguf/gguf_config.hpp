// inference/gguf/gguf_config.hpp - the shape of the model in a GGUF file, whose architecture
// must be llama.
//
// A pure function. Keys that change the model and are not served are refused by name.
#pragma once

#include "base/error.hpp"
#include "inference/formats/described_model.hpp"
#include "inference/gguf/gguf_fields.hpp"

namespace orrery {

/// Errors name the file, the key and what was expected.
[[nodiscard]] Result<DescribedModel> read_gguf_config(GgufFields& fields);

}  // namespace orrery

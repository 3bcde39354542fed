// inference/hugging_face/hugging_face_config.hpp - the config.json of a model as Hugging Face's
// transformers writes it: LlamaForCausalLM and GPT2LMHeadModel.
//
// Pure functions. Keys that change the model and are not known here are refused by name; those that
// only guide training or describe the file are not looked at.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "inference/formats/described_model.hpp"

namespace orrery {

/// Errors name the file, the key and what was expected. A context of more than 65536 tokens is cut
/// to that.
[[nodiscard]] Result<DescribedModel> read_hugging_face_config(const nlohmann::json& json,
                                                              const std::string& file);

}  // namespace orrery

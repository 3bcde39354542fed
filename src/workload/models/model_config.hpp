// workload/models/model_config.hpp - reads a Hugging Face config.json into a Model.
//
// Language models of the types in workload/models/model_rules.hpp, models that wrap one in a
// text_config (with the known image towers), and four types of other families: vit, dit, wan and
// dlrm. Keys that do not affect the shape are ignored. An unknown model_type is counted with
// Llama's rules if it names its sizes itself; such guesses, and class defaults used, are listed in
// Model::assumptions.
#pragma once

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// More parameters than this are a mistake in the configuration.
inline constexpr double kParametersMax = 1e15;

/// `config` is the mapping of a config.json, or of the same keys in YAML. The result has no name
/// and no aliases. Errors: the first wrong, missing or contradictory key, with its position.
[[nodiscard]] Result<Model> read_model_config(const DocumentNode& config);

}  // namespace orrery

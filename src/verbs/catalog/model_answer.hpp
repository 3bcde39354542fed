// verbs/catalog/model_answer.hpp - models of the catalog (or a config.json) for people and
// programs.
#pragma once

#include <optional>
#include <string>

#include "verbs/verb_answer.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

[[nodiscard]] VerbAnswer list_models(const ModelCatalog& models);

/// Shows a catalog model by name or alias; none: there is no such model.
[[nodiscard]] std::optional<VerbAnswer> show_model(const ModelCatalog& models,
                                                   const std::string& name);

/// Shows a model described by a config.json. Errors: those of the file.
[[nodiscard]] Result<VerbAnswer> show_model_file(const ModelCatalog& models,
                                                 const std::string& path);

}  // namespace orrery

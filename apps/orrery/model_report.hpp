// apps/orrery/model_report.hpp - models of the catalog (or a config.json) for people and programs.
#pragma once

#include <string>

#include "apps/orrery/context.hpp"

namespace orrery {

[[nodiscard]] Status list_models(const ModelCatalog& models, OutputFormat output);

/// Shows a catalog model by name or alias; returns false when there is none.
[[nodiscard]] bool show_model(const ModelCatalog& models, const std::string& name,
                              OutputFormat output);

/// Shows a model described by a config.json.
[[nodiscard]] Status show_model_file(const ModelCatalog& models, const std::string& path,
                                     OutputFormat output);

}  // namespace orrery

// hardware/fact_overlay.hpp - documents whose facts replace or extend those compiled into the
// program.
//
// They come from a directory (`--catalog DIR`) or follow a fleet in its file; Catalog, Calibration
// and ModelCatalog each read their own. Plain values.
#pragma once

#include <string>
#include <vector>

#include "base/format/document.hpp"

namespace orrery {

/// One layer of facts, which replaces those of earlier layers.
struct FactOverlay {
  std::vector<Document> catalogs;
  std::vector<Document> calibrations;
  std::vector<Document> models;

  [[nodiscard]] bool empty() const {
    return catalogs.empty() && calibrations.empty() && models.empty();
  }
};

/// Sorts documents by their `kind`. Errors: another kind than Catalog, Calibration or Model, with
/// file:line:column.
[[nodiscard]] Result<FactOverlay> fact_overlay(std::vector<Document> documents);

/// Returns the overlay of a directory, or none for "". It is every *.yaml in name order:
/// calibration*.yaml, models/*.yaml, and others, which are catalogs. Errors: of the file system;
/// text that is not YAML; nothing to read.
[[nodiscard]] Result<std::vector<FactOverlay>> read_fact_overlays(const std::string& directory);

}  // namespace orrery

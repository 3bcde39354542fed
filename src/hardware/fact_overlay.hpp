// hardware/fact_overlay.hpp - documents whose facts replace or extend those compiled into the
// program.
//
// They come from a directory (`--catalog DIR`) or follow a fleet in its file; Catalog, Calibration
// and ModelCatalog each read their own. Plain values.
#pragma once

#include <optional>
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

/// Returns the value of `kind` of a document, if it has one.
[[nodiscard]] std::optional<DocumentNode> document_kind(const DocumentNode& root);

/// Sorts the documents that follow a fleet by their `kind`. Errors: another kind than Catalog or
/// Calibration, with file:line:column. Models cannot follow a fleet, because the work of earlier
/// jobs refers to them.
[[nodiscard]] Result<FactOverlay> fact_overlay(std::vector<Document> documents);

/// Returns the overlay of a directory, or none for "". It is every *.yaml in name order:
/// calibration*.yaml, models/*.yaml, and others, which are catalogs. Errors: of the file system;
/// text that is not YAML; nothing to read.
[[nodiscard]] Result<std::vector<FactOverlay>> read_fact_overlays(const std::string& directory);

}  // namespace orrery

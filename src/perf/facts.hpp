// perf/facts.hpp - all facts that plans and prices rest on: hardware, calibration, models.
//
// Loaded in one place, from the files compiled into the program and overlays; a verb, the daemon
// and each changed fleet have an object of their own. Immutable, freely shared between threads; the
// views that are handed down refer to it. Cost: some 20 ms.
#pragma once

#include <vector>

#include "hardware/catalog.hpp"
#include "hardware/fact_overlay.hpp"
#include "perf/calibration.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

/// Facts as they are handed down; what they refer to outlives it.
struct FactsView {
  const Catalog& catalog;
  const Calibration& calibration;
  const ModelCatalog& models;
};

class Facts {
 public:
  /// The built-in facts with overlays, each over those before it. Errors: anything wrong in an
  /// overlay, with file:line:column.
  [[nodiscard]] static Result<Facts> load(std::vector<FactOverlay> overlays);
  /// These facts with one more overlay. Errors: as load.
  [[nodiscard]] Result<Facts> with(const FactOverlay& overlay) const;

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  [[nodiscard]] const Calibration& calibration() const { return calibration_; }
  [[nodiscard]] const ModelCatalog& models() const { return models_; }
  [[nodiscard]] FactsView view() const { return {catalog_, calibration_, models_}; }

 private:
  std::vector<FactOverlay> overlays_;
  Catalog catalog_;
  Calibration calibration_;
  ModelCatalog models_;
};

}  // namespace orrery

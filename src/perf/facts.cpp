#include "perf/facts.hpp"

#include <utility>

#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

Result<Facts> Facts::load(std::vector<FactOverlay> overlays) {
  Facts facts;
  facts.overlays_ = std::move(overlays);
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), facts.overlays_);
  if (!catalog) return forward_error(catalog);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), facts.overlays_);
  if (!calibration) return forward_error(calibration);
  Result<ModelCatalog> models = ModelCatalog::load(builtin_models(), facts.overlays_);
  if (!models) return forward_error(models);
  facts.catalog_ = *std::move(catalog);
  facts.calibration_ = *std::move(calibration);
  facts.models_ = *std::move(models);
  return facts;
}

Result<Facts> Facts::with(const FactOverlay& overlay) const {
  std::vector<FactOverlay> overlays = overlays_;
  overlays.push_back(overlay);
  return load(std::move(overlays));
}

}  // namespace orrery

#include "verbs/command_options.hpp"

#include "hardware/builtin_catalog.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

Result<Catalog> load_catalog(const CommandOptions& options) {
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(options.catalog_directory);
  if (!overlays) return tl::unexpected(overlays.error());
  return Catalog::load(builtin_catalog(), *overlays);
}

Result<ModelCatalog> load_models(const CommandOptions& options) {
  const Result<std::vector<FactOverlay>> overlays = read_fact_overlays(options.catalog_directory);
  if (!overlays) return tl::unexpected(overlays.error());
  return ModelCatalog::load(builtin_models(), *overlays);
}

Result<Facts> load_facts(const CommandOptions& options, const FactOverlay& fleet) {
  Result<std::vector<FactOverlay>> overlays = read_fact_overlays(options.catalog_directory);
  if (!overlays) return forward_error(overlays);
  if (!fleet.empty()) overlays->push_back(fleet);
  if (!overlays->empty()) return Facts::load(*std::move(overlays));
  // A study or a comparison loads them many times.
  static const Result<Facts> kBuiltIn = Facts::load({});
  return kBuiltIn;
}

}  // namespace orrery

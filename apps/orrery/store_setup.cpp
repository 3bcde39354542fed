#include "apps/orrery/store_setup.hpp"

#include <optional>

#include "base/document.hpp"
#include "control/settings.hpp"
#include "fleet/spec.hpp"

namespace orrery {

Result<std::unique_ptr<StoredSetup>> StoredSetup::load(const CommandOptions& options,
                                                       StoreReader& store) {
  StorageResult<StoreTexts> stored = store.texts();
  if (!stored) return forward_error(stored);
  Result<SetupTexts> texts = setup_texts(*stored);
  if (!texts) return environment_error(store.name() + ": " + texts.error().message);
  Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return forward_error(catalog);
  Result<Calibration> calibration = load_calibration(options);
  if (!calibration) return forward_error(calibration);
  Result<ModelCatalog> models = load_models(options);
  if (!models) return forward_error(models);
  auto setup = std::make_unique<StoredSetup>();
  setup->catalog_ = *std::move(catalog);
  setup->calibration_ = *std::move(calibration);
  setup->models_ = *std::move(models);
  if (Status made = setup->make(*texts); !made) return forward_error(made);
  return setup;
}

Status StoredSetup::make(const SetupTexts& texts) {
  const Result<Document> fleet_text = Document::parse(texts.fleet, "fleet.yaml");
  if (!fleet_text) return tl::unexpected(fleet_text.error());
  const Result<FleetSpec> fleet = read_fleet_spec(*fleet_text);
  if (!fleet) return tl::unexpected(fleet.error());
  std::optional<TenantsSpec> tenants;
  if (!texts.tenants.empty()) {
    const Result<Document> text = Document::parse(texts.tenants, "tenants.yaml");
    if (!text) return tl::unexpected(text.error());
    Result<TenantsSpec> spec = read_tenants_spec(*text);
    if (!spec) return forward_error(spec);
    tenants = *std::move(spec);
  }
  Result<Policy> policy = policy_from(texts.policy);
  if (!policy) return forward_error(policy);
  Result<std::unique_ptr<ControlFacts>> cluster =
      ControlFacts::make({catalog_, calibration_, models_}, *fleet, tenants ? &*tenants : nullptr);
  if (!cluster) return forward_error(cluster);
  cluster_ = *std::move(cluster);
  planned_ = cluster_->setup(*policy, texts.begin);
  control_ = planned_;
  control_.plans = [](const PlanKey&) {
    return std::make_shared<const PlanEntry>(tl::unexpected(Rejection{}));
  };
  return {};
}

}  // namespace orrery

#include "apps/orrery/store_setup.hpp"

#include "store/stored_facts.hpp"

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
  Result<StoredFacts> made = stored_facts({catalog_, calibration_, models_}, texts);
  if (!made) return forward_error(made);
  cluster_ = std::move(made->facts);
  planned_ = cluster_->setup(made->policy, texts.begin);
  control_ = planned_;
  control_.plans = [](const PlanKey&) {
    return std::make_shared<const PlanEntry>(tl::unexpected(Rejection{}));
  };
  return {};
}

}  // namespace orrery

#include "apps/orrery/store_setup.hpp"

#include <filesystem>

namespace orrery {

CommandOptions with_catalog_of(const CommandOptions& options, const std::string& store) {
  CommandOptions own = options;
  std::filesystem::path path(store);
  if (!path.has_filename()) path = path.parent_path();  // "DIR/store/"
  const auto beside = path.parent_path() / "catalog";
  std::error_code failed;
  if (own.catalog_directory.empty() && std::filesystem::is_directory(beside, failed)) {
    own.catalog_directory = beside.string();
  }
  return own;
}

Result<std::unique_ptr<StoredSetup>> StoredSetup::load(const CommandOptions& options,
                                                       StoreReader& store) {
  const StorageResult<StoreTexts> texts = store.texts();
  if (!texts) return tl::unexpected<Error>(texts.error());
  if (const Result<SetupTexts> begun = setup_texts(*texts); !begun) {
    return environment_error(store.name() + ": " + begun.error().message);
  }
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

Status StoredSetup::make(const StoreTexts& texts) {
  Result<std::unique_ptr<LiveSetup>> live =
      LiveSetup::make({catalog_, calibration_, models_}, texts, {});
  if (!live) return forward_error(live);
  live_ = *std::move(live);
  control_ = live_->control();
  control_.plans = [](const PlanKey&) {
    return std::make_shared<const PlanEntry>(tl::unexpected(Rejection{}));
  };
  return {};
}

}  // namespace orrery

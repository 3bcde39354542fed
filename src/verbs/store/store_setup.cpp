#include "verbs/store/store_setup.hpp"

#include <filesystem>

#include "store/history.hpp"

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
  Result<Facts> facts = load_facts(options);
  if (!facts) return forward_error(facts);
  auto setup = std::make_unique<StoredSetup>();
  setup->facts_ = *std::move(facts);
  if (Status made = setup->make(*texts); !made) return forward_error(made);
  return setup;
}

Result<std::uint64_t> StoredSetup::next_job(StoreReader& store) const {
  StateTarget target(control_);
  HistoryResult<RecoveredHistory> history = recover_history(store, nullptr, target);
  if (!history) return forward_error(history);
  return control_.next_job(target.state().jobs());
}

Status StoredSetup::make(const StoreTexts& texts) {
  Result<std::unique_ptr<LiveSetup>> live = LiveSetup::make(facts_, texts, {});
  if (!live) return forward_error(live);
  live_ = *std::move(live);
  control_ = live_->control();
  control_.plans = [](const PlanKey&) {
    return std::make_shared<const PlanEntry>(tl::unexpected(Rejection{}));
  };
  return {};
}

}  // namespace orrery

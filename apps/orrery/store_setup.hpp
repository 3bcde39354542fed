// apps/orrery/store_setup.hpp - the control setup of a log, made of the texts in its store.
//
// Made by a verb that brings a log's state back; what is in it refers to it, so it stays where it
// is. One thread.
#pragma once

#include <memory>

#include "apps/orrery/context.hpp"
#include "executor/live_setup.hpp"

namespace orrery {

/// The catalog that a controller lays over the one compiled in lies beside its store; --catalog
/// goes before it. `store`: the store's directory, or a file in the controller's.
[[nodiscard]] CommandOptions with_catalog_of(const CommandOptions& options,
                                             const std::string& store);

class StoredSetup {
 public:
  StoredSetup() = default;
  StoredSetup(const StoredSetup&) = delete;
  StoredSetup& operator=(const StoredSetup&) = delete;

  /// Errors: no log was begun there; those of the texts, with "fleet.yaml:line:column".
  [[nodiscard]] static Result<std::unique_ptr<StoredSetup>> load(const CommandOptions& options,
                                                                 StoreReader& store);

  /// Enough to apply events and to take a snapshot, where of a plan the key alone counts: each is
  /// said to be none, and nothing is searched.
  [[nodiscard]] const ControlSetup& control() const { return control_; }
  /// As its controller has it, but for the settings of controller.yaml: to go on with.
  [[nodiscard]] LiveSetup& live() { return *live_; }

 private:
  [[nodiscard]] Status make(const StoreTexts& texts);

  Catalog catalog_;
  Calibration calibration_;
  ModelCatalog models_;
  std::unique_ptr<LiveSetup> live_;
  ControlSetup control_;
};

}  // namespace orrery

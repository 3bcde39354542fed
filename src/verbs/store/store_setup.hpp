// verbs/store/store_setup.hpp - the control setup of a log, made from the texts in its store.
//
// Made by a verb that brings a log's state back; what is in it refers to it, so it stays where it
// is. One thread.
#pragma once

#include <memory>

#include "executor/live/live_setup.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

/// Returns options with the catalog that a controller keeps beside its store, over the built-in
/// one; --catalog takes precedence. `store`: the store's directory, or a file in the controller's.
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

  /// A setup for applying events and taking a snapshot, where only the key of a plan counts: each
  /// plan is reported as absent, and nothing is searched.
  [[nodiscard]] const ControlSetup& control() const { return control_; }
  /// The setup to go on with: that of the controller, but for the settings of controller.yaml.
  [[nodiscard]] LiveSetup& live() { return *live_; }
  /// Returns the first job number that the log of `store` has not given out; reads it as a
  /// controller does. Errors: of the store; damage.
  [[nodiscard]] Result<std::uint64_t> next_job(StoreReader& store) const;

 private:
  [[nodiscard]] Status make(const StoreTexts& texts);

  Facts facts_;
  std::unique_ptr<LiveSetup> live_;
  ControlSetup control_;
};

}  // namespace orrery

// store/setup_texts.hpp - the facts of a log, as texts that a store keeps beside it: they explain
// its ids to readers that do not have the original files.
//
// Written once, when the log is begun; docs/formats.md describes the names. Plain values.
#pragma once

#include <string>

#include "base/time.hpp"
#include "store/store.hpp"

namespace orrery {

struct SetupTexts {
  std::string fleet;    ///< "fleet.yaml", a Fleet file
  std::string tenants;  ///< "tenants.yaml", a Tenants file; empty: the one tenant "default"
  std::string policy;   ///< "policy.yaml", a Policy file
  Instant begin;        ///< "begin", in nanoseconds since 1970 UTC: when the meters began
  std::string writer;   ///< "writer", name and version of the program: "orreryd 0.1.0"
};

[[nodiscard]] StoreTexts store_texts(const SetupTexts& setup);

/// Errors (kEnvironment): no fleet, or a time that is not a number: the store was never begun.
[[nodiscard]] Result<SetupTexts> setup_texts(const StoreTexts& texts);

/// Returns the digest that the heads of the log name (JournalOptions::setup): 16 hexadecimal digits
/// over all fields but the writer, which may be a newer program.
[[nodiscard]] std::string setup_digest(const SetupTexts& setup);

}  // namespace orrery

// store/setup_texts.hpp - the facts a log rests on, as the texts a store keeps beside it: what its
// ids refer to, for whoever reads it without the files it was begun with.
//
// Written once, by whoever begins the log; docs/formats.md describes the names. Values.
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

/// Errors (kEnvironment): no fleet, or a time that is no number: the store was never begun.
[[nodiscard]] Result<SetupTexts> setup_texts(const StoreTexts& texts);

/// What the heads of the log name (JournalOptions::setup): 16 hexadecimal digits over all but the
/// writer, who may be a newer program.
[[nodiscard]] std::string setup_digest(const SetupTexts& setup);

}  // namespace orrery

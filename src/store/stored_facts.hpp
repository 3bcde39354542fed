// store/stored_facts.hpp - builds the facts of a log from the texts that are kept beside it.
//
// Used by all programs that restore a history: the daemon, and the commands for stores and records.
#pragma once

#include <memory>

#include "control/control_facts.hpp"
#include "perf/facts.hpp"
#include "store/setup_texts.hpp"

namespace orrery {

struct StoredFacts {
  std::unique_ptr<const Facts> own;  ///< with the overlay of the fleet; null: it has none
  std::unique_ptr<ControlFacts> facts;
  Policy policy;
};

/// `base`: the facts that those of the fleet overlay, and the source of all models; it outlives the
/// result. Errors: those of the texts, with "fleet.yaml:line:column".
[[nodiscard]] Result<StoredFacts> stored_facts(const Facts& base, const SetupTexts& texts);

}  // namespace orrery

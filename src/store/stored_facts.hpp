// store/stored_facts.hpp - builds the facts of a log from the texts that are kept beside it.
//
// Used by all programs that restore a history: the daemon, and the commands for stores and records.
#pragma once

#include <memory>

#include "control/control_facts.hpp"
#include "store/setup_texts.hpp"

namespace orrery {

struct StoredFacts {
  std::unique_ptr<ControlFacts> facts;
  Policy policy;
};

/// `facts` must outlive the result. Errors: those of the texts, with "fleet.yaml:line:column".
[[nodiscard]] Result<StoredFacts> stored_facts(const ControlFacts::Facts& facts,
                                               const SetupTexts& texts);

}  // namespace orrery

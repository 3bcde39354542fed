// store/stored_facts.hpp - the facts of a log, made of the texts that are kept beside it.
//
// Made by whoever brings a history back: the daemon, the verbs over a store or a record.
#pragma once

#include <memory>

#include "control/control_facts.hpp"
#include "store/setup_texts.hpp"

namespace orrery {

struct StoredFacts {
  std::unique_ptr<ControlFacts> facts;
  Policy policy;
};

/// `facts` outlive it. Errors: those of the texts, with "fleet.yaml:line:column".
[[nodiscard]] Result<StoredFacts> stored_facts(const ControlFacts::Facts& facts,
                                               const SetupTexts& texts);

}  // namespace orrery

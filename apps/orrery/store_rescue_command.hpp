// apps/orrery/store_rescue_command.hpp - the verbs of `orrery store` for a store that was lost or
// damaged. Added by apps/orrery/store_command.cpp.
#pragma once

#include "apps/orrery/command.hpp"

namespace orrery {

void add_store_rescue_verbs(CLI::App& store, CommandOptions& options, Verb& chosen);

}  // namespace orrery

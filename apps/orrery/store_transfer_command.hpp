// apps/orrery/store_transfer_command.hpp - the verbs of `orrery store` for a log in etcd: go on
// after a backup, copy to or from a directory. Added by apps/orrery/store_command.cpp.
#pragma once

#include "apps/orrery/command.hpp"

namespace orrery {

void add_store_transfer_verbs(CLI::App& store, CommandOptions& options, Verb& chosen);

}  // namespace orrery

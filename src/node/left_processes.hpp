// node/left_processes.hpp - what ranks have started and nobody holds any more.
//
// Keeper and guard answer for each other (node/keeper_guard.hpp). Killed in one moment they take
// the ranks with them, but not what the ranks have started. That is known by the environment of
// its attempt, which a process inherits; one that has put its environment off is not found.
// Called by whoever seals an attempt's directory. Cost: a look at every process of the machine.
#pragma once

#include "node/keeper_launch.hpp"

namespace orrery {

/// Sends SIGKILL to every process of the attempt. True: there was none.
[[nodiscard]] bool none_left(const KeeperFiles& files);

}  // namespace orrery

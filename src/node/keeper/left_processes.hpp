// node/keeper/left_processes.hpp - processes that ranks have started and that neither keeper nor
// guard holds.
//
// Keeper and guard watch each other (node/keeper/keeper_guard.hpp). When both are killed at one
// moment the ranks end with them, but not the processes that ranks have started. These are found by
// the environment of their attempt, which a process inherits; a process that has removed its
// environment is not found. Called before an attempt's directory is sealed. Cost: a look at every
// process of the machine.
#pragma once

#include "node/keeper/keeper_launch.hpp"

namespace orrery {

/// Sends SIGKILL to every process of the attempt. Returns whether there was none.
[[nodiscard]] bool none_left(const KeeperFiles& files);

}  // namespace orrery

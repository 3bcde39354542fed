// node/keeper/keeper_guard.hpp - two processes that watch each other: the keeper, and above it a
// guard that does nothing but wait.
//
// A process that is killed cannot clean up after itself, and the kernel ends only its direct
// children with it. So whichever of the two is killed, the other one ends what is left: the guard
// adopts what a dead keeper leaves, and a keeper whose guard has died is sent SIGTERM. The process
// number that the agent knows is the guard's; it ends last, when no process is left.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {

/// Holds the directory's lock for as long as either of the two lives; it is free when neither is
/// left. Error: another keeper has it.
[[nodiscard]] Result<FileDescriptor> lock_keeper_directory(const KeeperFiles& files);

/// Runs `keeper` in a new process, with the signals it waits for blocked, and waits until it and
/// all its descendants have ended. SIGTERM is passed on. Returns its exit status (128 + a signal).
/// Precondition: a single thread.
[[nodiscard]] int run_guarded(const std::function<int()>& keeper);

}  // namespace orrery

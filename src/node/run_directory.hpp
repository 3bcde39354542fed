// node/run_directory.hpp - where an agent's attempts have what ends with the boot: sockets, locks,
// launch files. In memory where that can be, for a disk gains nothing by files of milliseconds.
//
//   DIR/run   a link to a directory of /run or /dev/shm, for root where these are in memory
//
// For others everything is in DIR/attempts: what they have in memory goes when they log out, and a
// keeper whose lock is gone would be taken for dead. The link is what counts, from its first making
// until the boot ends; who moves DIR moves it along.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// Finds it, or makes it: a path without links, DIR/attempts itself where nothing is in memory.
/// Precondition: DIR is there, and its lock is held. Errors: a link to what is no directory of this
/// user's.
[[nodiscard]] Result<std::string> own_run_directory(const std::string& directory);

/// Removes what is over, and all of it where nobody lives. Precondition: no agent of DIR lives, or
/// this is it and starts nobody any more.
void leave_run_directory(const std::string& directory);

/// Of all attempts that are or were below DIR.
[[nodiscard]] std::vector<std::string> attempt_locks(const std::string& directory);

}  // namespace orrery

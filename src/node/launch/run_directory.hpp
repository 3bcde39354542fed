// node/launch/run_directory.hpp - where an agent's attempts have the files that end with the boot:
// sockets, locks, launch files. In memory where possible, for a disk gains nothing by files of
// milliseconds.
//
//   DIR/run   a link to a directory of /run or /dev/shm, for root where these are in memory
//
// Other users have everything in DIR/attempts: their files in memory are removed when they log out,
// and a keeper whose lock is gone would be taken for dead. The link decides, from its first making
// until the boot ends, and moves along when DIR is moved.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// Lets other users pass through the directory to their own files, without listing it. A directory
/// that cannot be changed stays as it is.
void make_searchable(const std::string& directory);

/// Finds or makes the directory. Returns a path without links, DIR/attempts itself where nothing is
/// in memory. Precondition: DIR exists, and its lock is held. Errors: a link to something else than
/// a directory of this user.
[[nodiscard]] Result<std::string> own_run_directory(const std::string& directory);

/// Removes attempts that are over, and the whole directory where no attempt lives. Precondition: no
/// agent of DIR lives, or the caller is that agent and starts no more attempts.
void leave_run_directory(const std::string& directory);

/// Returns the locks of all attempts that are or were below DIR.
[[nodiscard]] std::vector<std::string> attempt_locks(const std::string& directory);

}  // namespace orrery

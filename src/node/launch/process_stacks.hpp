// node/launch/process_stacks.hpp - where the threads of a process and of its descendants are, as
// far as the kernel reports it: states, wait channels, and kernel stacks where the reader is root.
//
// A function of /proc. Cost: five small files a thread, at most some thousand threads.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

/// Describes all processes of the session that `leader` leads, and their descendants, as text; what
/// may not be read is left out. Reads no file that a hanging process could hold up.
[[nodiscard]] std::string stacks_under(pid_t leader);

}  // namespace orrery

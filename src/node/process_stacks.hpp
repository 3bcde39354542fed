// node/process_stacks.hpp - where the threads of a process and of those it started are, as far as
// the kernel tells: their states, what they wait for, and its own stacks where the reader is root.
//
// A function of /proc. Cost: five small files a thread, at most some thousand threads.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

/// Of all processes of the session that `leader` leads, and of what they have started, as text;
/// what may not be read is left out. Nothing is read that a process which hangs could hold up.
[[nodiscard]] std::string stacks_under(pid_t leader);

}  // namespace orrery

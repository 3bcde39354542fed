// node/exit_cause.hpp - why a process ended, from its status and its last lines: the program's own
// fault, the node's, the network's or the storage's, with the line that says so.
//
// Pure. A short table of messages that broken machines make programs write; whatever is not sure is
// the program's. Any program can write them, so the result is a claim, which control judges. A peer
// that went away is no fault of the network: it died of its own cause, which its keeper reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/job.hpp"

namespace orrery {

/// `status` as in ProcessExit; `tail`: the end of what it wrote. Evidence is empty where nothing
/// but the status speaks. Only the last 8 KiB are read. O(tail).
[[nodiscard]] Blame exit_cause(int status, std::string_view tail);

/// Of an end after the kernel has killed `kills` processes of the attempt here because they had all
/// of `limit`, in bytes, that they asked for together.
[[nodiscard]] Blame out_of_memory(std::uint64_t kills, std::uint64_t limit);

}  // namespace orrery

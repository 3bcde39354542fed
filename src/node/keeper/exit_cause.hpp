// node/keeper/exit_cause.hpp - why a process ended, from its status and its last lines: the
// program's own fault, the node's, the network's or the storage's, with the line that says so.
//
// Pure. Uses a short table of messages that programs write on broken machines; an uncertain case is
// the program's fault. Any program can write them, so the result is a claim, which control judges.
// A peer that went away is no fault of the network: it ended for its own cause, which its keeper
// reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "control/state/job.hpp"

namespace orrery {

/// `status` is as in ProcessExit; `tail` is the end of the process's output. Evidence is empty
/// where only the status gives the cause. Only the last 8 KiB are read. O(tail).
[[nodiscard]] Blame exit_cause(int status, std::string_view tail);

/// Returns the cause of an end after the kernel has killed `kills` processes of the attempt on this
/// node because together they used all of `limit`, in bytes, that they asked for.
[[nodiscard]] Blame out_of_memory(std::uint64_t kills, std::uint64_t limit);

}  // namespace orrery

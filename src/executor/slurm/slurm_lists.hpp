// executor/slurm/slurm_lists.hpp - what squeue and scontrol print, as holds and nodes.
//
// Pure functions of a text, for Slurm 20.11 and later; any bytes may come. A list is read as a
// whole or not at all: a part of it would make holds vanish. Names, comments and reasons are free
// text that anybody who may submit a job chooses, so squeue is asked to part its fields by a text
// that is drawn anew for each list. Cost O(bytes + names of nodes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "executor/holds/hold.hpp"

namespace orrery {

/// Returns the text between two fields: no field has it unless its author knew the number, and it
/// never overlaps itself.
[[nodiscard]] std::string squeue_separator(std::uint64_t drawn);

/// Returns the argument of `squeue -h -o`, for read_squeue().
[[nodiscard]] std::string squeue_format(std::string_view separator);

/// What one list of squeue is read against.
struct SqueueReading {
  std::string_view separator;
  std::uint64_t cluster = 0;  ///< whose holds are read; other jobs are passed over
  Instant now_wall;           ///< when squeue ran, by the wall clock of this machine
};

/// Returns the cluster's holds in squeue's order. squeue must have run in the time zone UTC.
/// `nodes` are those that Slurm names, also after the end; none while the hold waits. `left` is
/// given while it runs or ends, `starts_in` while it waits. Errors: output of another form or cut
/// off; of a hold of this cluster also: a state that is not known, no host list, no time.
[[nodiscard]] Result<std::vector<HoldSeen>> read_squeue(std::string_view text,
                                                        const SqueueReading& reading);

/// Returns the phase of a job in a state as squeue prints it, such as "NODE_FAIL"; none: there is
/// no such state.
[[nodiscard]] std::optional<HoldPhase> hold_phase(std::string_view state);

struct SlurmNode : ManagerNode {
  /// Slurm cannot end the processes there: the node does not answer, or has said so.
  bool may_keep_processes = false;
};

/// Reads `scontrol -a -o show node`. Nodes whose names no fleet can have are left out. The reason
/// of a node that is out of service without one is its state. Errors: output of another form or
/// cut off.
[[nodiscard]] Result<std::vector<SlurmNode>> read_slurm_nodes(std::string_view text);

/// Whether Slurm ends all processes of a job, also those that left its session, according to what
/// `scontrol show config` prints: it tracks them by control groups.
[[nodiscard]] bool tracks_all_processes(std::string_view config);
/// Makes each kEnded a kEndedDirty, for a Slurm that does not end all processes.
void doubt_ends(std::vector<HoldSeen>& holds);

/// Joins the two lists. Slurm ends a job although a node of it does not answer; such a hold is
/// kEndedDirty as long as Slurm cannot end processes on the node.
[[nodiscard]] ManagerListing join_slurm_lists(std::vector<HoldSeen> holds,
                                              const std::vector<SlurmNode>& nodes);

}  // namespace orrery

// executor/slurm/slurm_lists.hpp - what scontrol prints of nodes, and the answer to a list of
// holds.
//
// Pure functions of a text, for Slurm 20.11 and later; any bytes may come. A list is read as a
// whole or not at all. Cost O(bytes + names of nodes).
#pragma once

#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "executor/holds/hold.hpp"
#include "executor/slurm/squeue_list.hpp"

namespace orrery {

struct SlurmNode : ManagerNode {
  /// Slurm cannot end the processes there: the node does not answer, or has said so.
  bool may_keep_processes = false;
  bool used = false;  ///< some job has the node, or is being cleaned up there
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
/// kEndedDirty as long as Slurm cannot end processes on the node. Slurm may hide other users' jobs
/// (PrivateData=jobs): if the list includes foreign work, a used node without a listed job has work
/// of the user "unknown".
[[nodiscard]] ManagerListing join_slurm_lists(SqueueList jobs, const std::vector<SlurmNode>& nodes);

}  // namespace orrery

// fleet/import/slurm_switches.hpp - the lines of a topology.conf as pods of leaves.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>

#include "fleet/import/slurm_cluster.hpp"
#include "fleet/import/slurm_conf.hpp"

namespace orrery {

/// Position in ImportedCluster::nodes by name; kFutureNode for one that is left out.
using SlurmNodeIndex = std::unordered_map<std::string, std::uint32_t>;
inline constexpr std::uint32_t kFutureNode = std::numeric_limits<std::uint32_t>::max();

/// Fills `pods`, `topology` and `unlisted_nodes` of a cluster whose nodes have been read: a pod for
/// every switch with leaves directly below it, one pod for leaves without a switch above, another
/// for nodes under no leaf. Spines with the same leaves are one pod. Errors (kInput): names that
/// are unknown or duplicate, a switch under several others, cycles. Cost O(lines + nodes).
[[nodiscard]] Status read_slurm_switches(std::span<const SlurmLine> lines,
                                         const SlurmNodeIndex& nodes, ImportedCluster& cluster);

}  // namespace orrery

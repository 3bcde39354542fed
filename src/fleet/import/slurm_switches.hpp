// fleet/import/slurm_switches.hpp - the switches or blocks of a Slurm topology as pods of leaves.
//
// The readers of topology.conf and topology.yaml (slurm_topology_yaml.hpp) build the same list;
// plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "fleet/import/imported_cluster.hpp"
#include "fleet/import/slurm_conf.hpp"

namespace orrery {

/// Position in ImportedCluster::nodes by name; kFutureNode for one that is left out.
using SlurmNodeIndex = std::unordered_map<std::string, std::uint32_t>;
inline constexpr std::uint32_t kFutureNode = std::numeric_limits<std::uint32_t>::max();

/// A text of a configuration file with its position.
struct SlurmText {
  std::string text;
  SourcePosition where;
};

/// A switch or a block. Invariant: it has either nodes or children, a block has nodes.
struct SlurmSwitch {
  SlurmText name;
  std::optional<SlurmText> nodes;     ///< a host list
  std::optional<SlurmText> children;  ///< a host list of switches
};

/// `kind` is kNone if there are no switches.
struct SlurmSwitches {
  ImportedTopology kind = ImportedTopology::kNone;
  std::vector<SlurmSwitch> switches;  ///< in the order of the file
};

/// Returns the switches of the lines of a topology.conf. Errors (kInput): a line with both or none
/// of nodes and children, SwitchName and BlockName lines in one file. Cost O(lines).
[[nodiscard]] Result<SlurmSwitches> read_topology_conf(std::span<const SlurmLine> lines);

/// Fills `pods`, `topology` and `unlisted_nodes` of a cluster whose nodes have been read: a pod for
/// every switch with leaves directly below it, one pod for leaves without a switch above, another
/// for nodes under no leaf. Spines with the same leaves are one pod. Errors (kInput): host lists
/// that are invalid, names that are unknown or duplicate, a switch under several others, cycles.
/// Cost O(switches + nodes).
[[nodiscard]] Status place_under_switches(const SlurmSwitches& switches,
                                          const SlurmNodeIndex& nodes, ImportedCluster& cluster);

}  // namespace orrery

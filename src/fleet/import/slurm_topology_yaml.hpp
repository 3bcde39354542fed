// fleet/import/slurm_topology_yaml.hpp - the topology of a cluster by Slurm's topology.yaml.
//
// The file (Slurm 25.05 and later) describes one or more named topologies: a tree of switches,
// blocks, or "flat". Partitions choose one by name; the others use the default, which is read here.
// The keys are those of Slurm 26.05. Mistakes that Slurm warns of or ignores are errors with their
// position. Empty values count as absent, so that the output of `scontrol show topoconf`, which
// writes all keys, can be read. Plain values.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "fleet/import/slurm_switches.hpp"

namespace orrery {

struct SlurmTopology {
  SlurmSwitches switches;          ///< none if all nodes are alike
  std::vector<std::string> notes;  ///< sentences on what was left out
};

/// Returns the first topology with `cluster_default: true`, or the first of all. One of a kind that
/// fleets cannot express (ring, torus3d) counts as flat, which a note says with its line. Errors
/// (kInput, with file:line): unknown or missing keys, values of a wrong type, in all topologies;
/// two topologies of one name, or one of no kind or several; a switch that does not have either
/// nodes or children, a block without nodes; block sizes that Slurm refuses. Cost O(bytes).
[[nodiscard]] Result<SlurmTopology> read_topology_yaml(const Document& document);

}  // namespace orrery

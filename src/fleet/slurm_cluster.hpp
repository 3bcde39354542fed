// fleet/slurm_cluster.hpp - the nodes and switches a Slurm configuration tells of.
//
// Read from a directory with slurm.conf, gres.conf and topology.conf, the last two optional. Every
// node has a node type of the catalog and stands under exactly one leaf. Slurm names GPUs, not
// servers, so the types are a choice; what was chosen is counted, for whoever has to say so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

struct SlurmNode {
  std::string name;
  const NodeType* type = nullptr;
  std::uint32_t line = 0;  ///< position in SlurmCluster::lines
};

/// A leaf switch, or a block of topology/block.
struct SlurmLeaf {
  std::string name;
  std::vector<std::uint32_t> nodes;  ///< positions in SlurmCluster::nodes; never empty
};

/// The leaves under one second-level switch.
struct SlurmPod {
  std::string name;
  std::vector<SlurmLeaf> leaves;
};

/// What topology.conf holds: nothing (or it is missing), switches, or blocks.
enum class SlurmTopology { kNone, kSwitches, kBlocks };

struct SlurmCluster {
  std::string name;                   ///< ClusterName, or ""
  std::string file;                   ///< its slurm.conf
  std::vector<SourcePosition> lines;  ///< of the NodeName lines
  std::vector<SlurmNode> nodes;
  std::vector<SlurmPod> pods;  ///< every node once; without topology.conf one leaf in one pod
  SlurmTopology topology = SlurmTopology::kNone;
  const NodeType* cpu_type = nullptr;  ///< what nodes without GPUs were taken for
  std::uint32_t cpu_nodes = 0;
  std::uint32_t future_nodes = 0;    ///< State=FUTURE, left out
  std::uint32_t feature_nodes = 0;   ///< their GPU's type is known from a feature alone
  std::uint32_t unlisted_nodes = 0;  ///< under no switch
  std::vector<std::string> choices;  ///< node types that were one of several
};

/// Reads `directory`. Errors (kInput, with file:line): whatever read_slurm_conf refuses, host lists
/// that are none, nodes or switches that stand twice or nowhere, GPU types the catalog does not
/// have, nodes it has no type for, several GPU types on one node, switches that are no tree.
/// `catalog` must outlive the cluster. Cost O(bytes + nodes).
[[nodiscard]] Result<SlurmCluster> read_slurm_cluster(const Catalog& catalog,
                                                      const std::string& directory);

}  // namespace orrery

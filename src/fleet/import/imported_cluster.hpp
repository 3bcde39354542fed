// fleet/import/imported_cluster.hpp - the nodes and switches that another system describes.
//
// Built by slurm_cluster.hpp or kubernetes_cluster.hpp, read by imported_spec.hpp; plain values.
// Every node has a node type of the catalog and is under exactly one leaf. Such systems name
// accelerators, not servers, so the types are chosen; `choices` and `notes` record how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

struct ImportedNode {
  std::string name;
  const NodeType* type = nullptr;
  std::uint32_t line = 0;  ///< position in ImportedCluster::lines
};

/// A leaf switch, or a block of topology/block.
struct ImportedLeaf {
  std::string name;
  std::vector<std::uint32_t> nodes;  ///< positions in ImportedCluster::nodes; never empty
};

/// The leaves under one second-level switch.
struct ImportedPod {
  std::string name;
  std::vector<ImportedLeaf> leaves;
};

/// What the other system describes of its network: nothing, switches, or blocks.
enum class ImportedTopology { kNone, kSwitches, kBlocks };

struct ImportedCluster {
  std::string name;                   ///< or ""
  std::string source;                 ///< the system it was read from: "Slurm"
  std::string file;                   ///< file that describes it
  std::vector<SourcePosition> lines;  ///< positions of nodes in the source
  std::vector<ImportedNode> nodes;
  std::vector<ImportedPod> pods;  ///< every node once; without a topology one leaf in one pod
  ImportedTopology topology = ImportedTopology::kNone;
  const NodeType* cpu_type = nullptr;  ///< type assumed for nodes without GPUs
  std::uint32_t cpu_nodes = 0;
  std::uint32_t unlisted_nodes = 0;  ///< under no switch
  std::vector<std::string> choices;  ///< node types that were one of several
  std::vector<std::string> notes;    ///< sentences on what was left out or assumed
};

}  // namespace orrery

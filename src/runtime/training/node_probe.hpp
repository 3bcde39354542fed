// runtime/training/node_probe.hpp - measures the pieces of a training step on this machine while as
// many ranks are busy as a job will have, with the trainer's own products, kernels and collectives.
//
// Ranks are threads here, one product each at a time, as in the trainer. Each piece is repeated for
// a while by all ranks at once, so that more ranks than cores share the cores as in a job; the
// median of some rounds is kept, because other load on the machine varies. Cost: about 35 windows
// per round and number of ranks; memory: about 150 MB per rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "runtime/trainer/transformer_config.hpp"
#include "workload/node_calibration.hpp"

namespace orrery {

enum class ProbeEffort {
  kWhole,
  kQuick,  ///< first sizes of each kind, shorter sequences, one round: a rough result in a second
};

struct NodeProbe {
  std::vector<std::uint32_t> ranks{1};  ///< numbers of busy ranks to measure, ascending
  ProductPrecision precision = ProductPrecision::kFloat32;
  std::string directory = ".";  ///< on the disk to measure
  ProbeEffort effort = ProbeEffort::kWhole;
};

/// Returns 1, 2, 4 and so on below `most`, and `most`.
[[nodiscard]] std::vector<std::uint32_t> rank_counts(std::uint32_t most);

/// Measures the node. Precondition: check_precision(precision) is fine. Errors: ranks that cannot
/// meet, a directory that cannot be written.
[[nodiscard]] Result<std::vector<BusyRanks>> probe_node(const Clock& clock, const NodeProbe& probe);

/// Converts a model of the trainer to the form that the cost model takes.
[[nodiscard]] TrainedShape shape_of(const TransformerConfig& config);

}  // namespace orrery

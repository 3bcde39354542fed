// runtime/training/node_probe.hpp - measures the pieces of a training step on this machine while as
// many ranks are busy as a job will have, with the trainer's own products, kernels and collectives.
//
// Ranks are threads here, one product each at a time, as in the trainer. Each piece is repeated for
// a while by all ranks at once, so that more ranks than cores share them as they will; the median
// of some rounds is kept, because neighbours come and go. Cost: about 35 windows a round and number
// of ranks; memory: about 150 MB a rank.
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
  kQuick,  ///< the first sizes of each kind, shorter sequences, once: a rough idea in a second
};

struct NodeProbe {
  std::vector<std::uint32_t> ranks{1};  ///< busy at once, ascending; each is measured
  ProductPrecision precision = ProductPrecision::kFloat32;
  std::string directory = ".";  ///< whose disk is written
  ProbeEffort effort = ProbeEffort::kWhole;
};

/// 1, 2, 4 and so on up to `most`, and that.
[[nodiscard]] std::vector<std::uint32_t> rank_counts(std::uint32_t most);

/// Precondition: check_precision(precision) is fine. Errors: ranks that cannot meet, a directory
/// that cannot be written.
[[nodiscard]] Result<std::vector<BusyRanks>> probe_node(const Clock& clock, const NodeProbe& probe);

/// A model of the trainer as the cost model is asked about it.
[[nodiscard]] TrainedShape shape_of(const TransformerConfig& config);

}  // namespace orrery

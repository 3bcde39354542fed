// perf/runs/run_cluster.hpp - what the free text about a cluster says of nodes, slices and the
// network.
//
// "DGX A100 80GB (NVLink3 300 GB/s/dir/GPU; 8x HDR200 IB per node)", "2 slice(s) x 64 chips",
// "4xXE9712x4GB200". Pure; text that says nothing of these leaves every field empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.hpp"
#include "hardware/accelerator.hpp"

namespace orrery {

struct ClusterFacts {
  std::optional<std::uint32_t> slices;              ///< of a torus, joined by the data-centre net
  std::optional<std::uint32_t> slice_accelerators;  ///< chips
  std::optional<BytesPerSecond> node_bandwidth;     ///< one direction, all adapters of a node
  std::optional<std::uint32_t> node_accelerators;
  std::string fabric;                            ///< id of a ScaleOutFabric; "" unknown
  std::optional<std::uint32_t> scale_up_domain;  ///< "NVL72"

  friend bool operator==(const ClusterFacts&, const ClusterFacts&) = default;
};

/// `count` accelerators in all: "64xNVIDIA DGX H100" with 512 are 8 a node, and the size in a TPU
/// slice's name counts chips or cores, whichever makes `count`. The accelerator decides which
/// generation "EFA" is. Cost: O(bytes).
[[nodiscard]] ClusterFacts read_cluster_text(std::string_view text, std::uint64_t count,
                                             const Accelerator& accelerator);

}  // namespace orrery

// perf/machine/machine.hpp - what one rank has and how ranks are joined: the hardware as the cost
// model sees it.
//
// Built by machine_of from catalog rows (nodes of one type in their default fabric), or by
// perf/machine/placement.hpp from devices of a fleet. A value; the rows it points to must outlive
// it. Invariant: tiers grow strictly in size, the last spans every rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

enum class LinkClass {
  kSwitched,  ///< NVLink, ICI or NeuronLink through switches
  kMesh,      ///< every accelerator to every other (xGMI)
  kPcie,
  kTorus,
  kInfiniband,
  kRoce,
  kSlingshot,
  kEfa,
  kEthernet,
  kOmniPath,
  kDataCenter,  ///< between slices or pods, through hosts
};

inline std::array<EnumWord<LinkClass>, 11> enum_words(LinkClass) {
  return {{{"switched", LinkClass::kSwitched},
           {"mesh", LinkClass::kMesh},
           {"pcie", LinkClass::kPcie},
           {"torus", LinkClass::kTorus},
           {"infiniband", LinkClass::kInfiniband},
           {"roce", LinkClass::kRoce},
           {"slingshot", LinkClass::kSlingshot},
           {"efa", LinkClass::kEfa},
           {"ethernet", LinkClass::kEthernet},
           {"omni-path", LinkClass::kOmniPath},
           {"data-center", LinkClass::kDataCenter}}};
}

/// One level of the network. Ranks r and q share a unit of it when r / size == q / size.
struct Tier {
  LinkClass link = LinkClass::kSwitched;
  std::uint64_t size = 1;  ///< ranks of one unit
  double bandwidth = 0;    ///< bytes/s of one rank, one direction, nominal
  double latency = 0;      ///< seconds, one small message
  double quality = 1;      ///< part of the bandwidth left by oversubscription, load, bad links
  int dimensions = 1;      ///< of a torus
  bool in_network_reduction = false;
  Routing routing = Routing::kAdaptive;
  bool gpudirect = true;  ///< false: every byte crosses the host link and host memory too
};

inline constexpr std::size_t kTiersMax = 4;

struct Machine {
  const Accelerator* accelerator = nullptr;
  const NodeType* node = nullptr;
  std::string generation;  ///< the calibration's word for its kind: "hopper", "tpu-v5p"
  std::uint64_t ranks = 1;
  std::uint32_t ranks_per_accelerator = 1;
  std::array<double, kNumberFormats> peak{};  ///< dense operations/s of a rank; 0: not supported
  double memory = 0;                          ///< bytes a program may use
  double memory_bandwidth = 0;                ///< bytes/s
  double host_bandwidth = 0;                  ///< bytes/s, one direction
  std::optional<double> host_memory;          ///< bytes, a rank's part of its node's; none: unknown
  double compute_units = 0;                   ///< of a rank (SMs, CUs); 0: unknown
  std::vector<Tier> tiers;
  std::vector<std::string> assumptions;

  [[nodiscard]] double peak_of(NumberFormat format) const {
    return peak[static_cast<std::size_t>(format)];
  }
};

/// Scale-up domains (nodes, where those are larger) and the network between them.
struct JoinedDomains {
  std::uint32_t domain = 1;  ///< accelerators of one
  Machine machine;           ///< several domains; its last tiers join them
};

/// The known facts beside the accelerator's name; omitted ones have the catalog's defaults.
struct MachineRequest {
  const Accelerator* accelerator = nullptr;
  std::uint64_t accelerators = 1;
  std::uint32_t ranks_per_accelerator = 1;
  std::optional<std::uint32_t> node_accelerators;
  std::optional<BytesPerSecond> node_bandwidth;  ///< all NICs of a node, one direction
  const ScaleOutFabric* fabric = nullptr;
  std::optional<std::uint64_t> slice_accelerators;  ///< of one torus slice
  std::optional<std::uint32_t> scale_up_domain;
  bool scale_out = false;  ///< with the network between nodes even where all fit inside one
};

/// A rank's part of the memory of its host, as the catalog has it. Precondition: node and ranks of
/// an accelerator are set.
[[nodiscard]] std::optional<double> host_memory_of_rank(const Machine& machine);

/// Nodes of the accelerator's default type in their default fabric, changed as asked.
/// Errors: no accelerators; no format a matrix product could use.
[[nodiscard]] Result<Machine> machine_of(const Catalog& catalog, const MachineRequest& request);

}  // namespace orrery

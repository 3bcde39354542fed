// scheduler/request/gang.hpp - the request of one gang and its allocation.
//
// A gang starts whole or not at all. Requests are made by scheduler/request/request.hpp from a job
// spec, allocations by scheduler/place/placer.hpp; both are values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/rejection.hpp"
#include "fleet/ids.hpp"
#include "fleet/rank_map.hpp"
#include "fleet/topology.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// The host resources that one rank needs beside its accelerator, in the units of NodeState.
struct HostNeeds {
  std::uint32_t cpu = 0;     ///< thousandths of a core
  std::uint32_t memory = 0;  ///< MiB
  std::uint32_t cxl = 0;     ///< GiB
  std::uint32_t disk = 0;    ///< GiB

  [[nodiscard]] bool any() const { return (cpu | memory | cxl | disk) != 0; }
  friend auto operator<=>(const HostNeeds&, const HostNeeds&) = default;
};

inline constexpr std::uint16_t kWholeDevice = 1000;

/// Invariant: devices >= node_devices >= 1; a share below a whole device only with one device;
/// with a segment, the gang is a whole number of segments of whole units.
struct GangRequest {
  FleetTypeId type;
  std::uint32_t devices = 1;           ///< ranks
  std::uint32_t node_devices = 1;      ///< ranks that share a node; the last may be fewer
  std::uint16_t share = kWholeDevice;  ///< thousandths of a device
  HostNeeds host;                      ///< needs of one rank
  TopologyLevel required = TopologyLevel::kFleet;
  TopologyLevel preferred = TopologyLevel::kFleet;
  std::uint32_t segment = 0;  ///< nodes that share a scale-up domain; 0: no segment requested
  std::optional<TopologyLevel> exclusive;
  bool rails_aligned = false;
  std::array<std::uint32_t, 3> slice{};  ///< sides of a slice of a torus; zeros: no slice requested
  std::uint64_t sites = ~std::uint64_t{0};  ///< bit i: allowed at site i

  [[nodiscard]] bool asks_slice() const { return slice[0] != 0; }

  friend auto operator<=>(const GangRequest&, const GangRequest&) = default;
};

/// Devices of a gang. Invariant: sorted by node, one entry a node, no mask empty.
struct Allocation {
  std::vector<NodeDevices> ranks;  ///< devices on which ranks run
  /// Devices taken beside them because the gang is exclusive; disjoint from `ranks`.
  std::vector<NodeDevices> idle;
  std::uint16_t share = kWholeDevice;

  [[nodiscard]] std::uint32_t devices() const;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

/// Why a job was refused, in the few bytes that a pass keeps.
struct Refusal {
  RejectionKind kind = RejectionKind::kBusy;
  TopologyLevel level = TopologyLevel::kFleet;  ///< level that blocks
  std::uint32_t missing = 0;  ///< devices by which the fullest place of the level falls short

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

}  // namespace orrery

// fleet/state.hpp - what changes in a fleet: health, free devices and host resources of nodes,
// shares of devices, state of links, and the free counts that follow from them.
//
// The arrays live in a FleetState, edited by the one Fleet that owns it (fleet/fleet.hpp) and read
// through FleetView (fleet/view.hpp).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/format/field_reader.hpp"
#include "fleet/cow_array.hpp"
#include "fleet/ids.hpp"

namespace orrery {

/// The life of a node as the scheduler sees it; only a ready node takes work.
enum class NodeHealth : std::uint8_t {
  kJoining,
  kReady,
  kSuspect,
  kLost,
  kDraining,
  kDrained,
  kQuarantined,
  kRepairing,
  kAbsent,  ///< belongs to a resource manager, which does not lend it now
};

inline std::array<EnumWord<NodeHealth>, 9> enum_words(NodeHealth) {
  return {{{"joining", NodeHealth::kJoining},
           {"ready", NodeHealth::kReady},
           {"suspect", NodeHealth::kSuspect},
           {"lost", NodeHealth::kLost},
           {"draining", NodeHealth::kDraining},
           {"drained", NodeHealth::kDrained},
           {"quarantined", NodeHealth::kQuarantined},
           {"repairing", NodeHealth::kRepairing},
           {"absent", NodeHealth::kAbsent}}};
}

struct NodeState {
  std::uint64_t free_mask = 0;  ///< bit i: device i of the node is not in use
  NodeHealth health = NodeHealth::kReady;
  std::uint32_t used_cpu = 0;     ///< thousandths of a core
  std::uint32_t used_memory = 0;  ///< MiB
  std::uint32_t used_cxl = 0;     ///< GiB
  std::uint32_t used_disk = 0;    ///< GiB

  /// Number of devices that jobs may get: 0 unless the node is ready.
  [[nodiscard]] std::uint32_t available() const {
    return health == NodeHealth::kReady ? static_cast<std::uint32_t>(std::popcount(free_mask)) : 0;
  }

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

/// Devices of one node: bit i is the node's device i. A gang is a list of them, ascending by node,
/// each node once, no mask empty.
struct NodeDevices {
  NodeId node;
  std::uint64_t devices = 0;

  friend bool operator==(const NodeDevices&, const NodeDevices&) = default;
};

/// Free devices and nodes of one accelerator type in one domain.
struct FreeCount {
  std::uint32_t devices = 0;  ///< available devices
  std::uint32_t nodes = 0;    ///< nodes with every device available

  friend bool operator==(const FreeCount&, const FreeCount&) = default;
};

/// The counts of one type in one domain are a row of cells: available devices, nodes with every
/// device available, then for k = 0, 1, .. the nodes with exactly k available devices. All rows
/// have the length of the longest, rounded up to a power of two, so that a row lies in one page,
/// and for nodes with eight devices in one cache line. Topology::count_row returns where a row
/// begins.
struct CountRow {
  static constexpr std::uint32_t kDevices = 0;
  static constexpr std::uint32_t kWholeNodes = 1;
  static constexpr std::uint32_t kNodesWith = 2;

  /// Cells of a row of a type of which no node has more than `devices`.
  [[nodiscard]] static constexpr std::uint32_t size(std::uint32_t devices) {
    return kNodesWith + devices + 1;
  }
};

struct LinkState {
  float health = 1;  ///< fraction of its bandwidth that is available
  float load = 0;    ///< fraction of its bandwidth in use

  friend bool operator==(const LinkState&, const LinkState&) = default;
};

// Pages are 2 KiB for what changes often (1 KiB would make the directory too large, 4 KiB the
// copies); links and shares change rarely and are many.
using NodeStates = CowArray<NodeState, 64>;
using FreeCounts = CowArray<std::uint32_t, 512>;
using LinkStates = CowArray<LinkState, 2048>;
/// Thousandths of each device in use by jobs that share it: 0 when it is free or taken whole, above
/// 1000 when it is oversubscribed. A shared device is not free: its bit of the free mask is clear.
using DeviceShares = CowArray<std::uint16_t, 2048>;
inline constexpr std::uint16_t kShareMax = 2000;

struct FleetState {
  NodeStates nodes;
  FreeCounts counts;
  LinkStates links;
  DeviceShares shares;
  std::uint32_t shared = 0;  ///< number of shared devices
};

}  // namespace orrery

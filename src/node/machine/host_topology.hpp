// node/machine/host_topology.hpp - processors, memory and NUMA nodes of this machine, as hwloc
// finds them.
//
// A value, read once; takes tens of milliseconds. In a container it describes what the container
// may use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

struct NumaNode {
  std::uint32_t number = 0;   ///< the kernel's
  std::uint32_t threads = 0;  ///< of hardware, next to it
  std::uint64_t memory_bytes = 0;
};

struct HostTopology {
  std::string processor;  ///< model of the first package; empty: not reported
  std::uint32_t packages = 0;
  std::uint32_t cores = 0;
  std::uint32_t threads = 0;  ///< of hardware
  std::uint64_t memory_bytes = 0;
  std::vector<NumaNode> numa;  ///< by number
};

/// Error: hwloc cannot read the machine.
[[nodiscard]] Result<HostTopology> host_topology();

}  // namespace orrery

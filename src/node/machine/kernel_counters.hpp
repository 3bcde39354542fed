// node/machine/kernel_counters.hpp - how busy this machine is, as the kernel counts it.
//
// A function of the files of /proc and /sys. Cost: a file or two for each network interface and
// port.
#pragma once

#include <cstdint>
#include <string>

#include "base/env.hpp"
#include "node/machine/kernel_directories.hpp"

namespace orrery {

/// Counters are since boot; what the kernel does not report is 0.
struct KernelCounters {
  std::uint64_t cpu_busy = 0;  ///< ticks of all CPUs that were not idle
  std::uint64_t cpu_total = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used_bytes = 0;  ///< memory that no program could get without swapping
  /// Bytes of interfaces that are hardware (all but the loopback where none is) and of InfiniBand
  /// ports.
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t network_errors = 0;  ///< packets that came or left in error
  std::uint64_t link_errors = 0;     ///< of ports: symbols, lost links, recoveries
};

[[nodiscard]] KernelCounters read_kernel_counters(Storage& storage,
                                                  const KernelDirectories& directories);

/// Returns the part of the time between two readings in which the CPUs were busy, 0 to 1.
[[nodiscard]] double cpu_busy_between(const KernelCounters& earlier, const KernelCounters& later);

}  // namespace orrery

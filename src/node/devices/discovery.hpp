// node/devices/discovery.hpp - which accelerators this machine has, asked of their makers'
// libraries and of the kernel, and what the catalog calls them.
//
// Built once by the agent's program, which owns it: the drivers it has opened are read for as long
// as the agent lives. What could not be found out is noted, never guessed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "hardware/catalog.hpp"
#include "node/devices/accelerator_driver.hpp"
#include "node/devices/pci_accelerators.hpp"

namespace orrery {

/// Where to look. Libraries are sonames or paths; the first one that exists counts.
struct DiscoverySources {
  std::vector<std::string> nvml = {"libnvidia-ml.so.1"};
  std::vector<std::string> rocm_smi = {"librocm_smi64.so", "librocm_smi64.so.7",
                                       "librocm_smi64.so.6", "/opt/rocm/lib/librocm_smi64.so"};
  KernelDirectories kernel;
};

struct Discovery {
  /// Those of drivers[0] come first, in its order, then those of the next; last those without a
  /// driver.
  std::vector<FoundAccelerator> accelerators;
  std::vector<std::unique_ptr<AcceleratorDriver>> drivers;  ///< that work
  std::vector<std::string> kernel_drivers;  ///< of accelerators that none of `drivers` reports
  std::vector<std::string> notes;
};

/// Finds the accelerators and their types. O(catalog) beside the drivers' own time, which may be
/// seconds.
[[nodiscard]] Discovery discover_accelerators(const Catalog& catalog, Storage& storage,
                                              const DiscoverySources& sources);

/// Returns the type of the catalog that has the maker's name as an id, a name or an alias, without
/// regard to case; for processors, a type that the name contains ("AMD EPYC 9654 96-Core
/// Processor"). nullptr: none.
[[nodiscard]] const Accelerator* accelerator_named(const Catalog& catalog, std::string_view name);

/// Fills in what the node offers: the type of most of its accelerators (ties: the first), or, where
/// there are none, its processors if the catalog has them. Accelerators of other types are noted.
void offer(Discovery& discovery, const Catalog& catalog, NodeInventory& inventory);

}  // namespace orrery

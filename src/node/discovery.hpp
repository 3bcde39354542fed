// node/discovery.hpp - which accelerators this machine has, asked of their makers' libraries and of
// the kernel, and what the catalog calls them.
//
// Built once by the agent's program, which owns it: the drivers it has opened are read for as long
// as the agent lives. What could not be found out is a note, never a guess.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "hardware/catalog.hpp"
#include "node/accelerator_driver.hpp"
#include "node/pci_accelerators.hpp"

namespace orrery {

/// Where to look. Libraries are sonames or paths, the first that is there counts.
struct DiscoverySources {
  std::vector<std::string> nvml = {"libnvidia-ml.so.1"};
  std::vector<std::string> rocm_smi = {"librocm_smi64.so", "librocm_smi64.so.7",
                                       "librocm_smi64.so.6", "/opt/rocm/lib/librocm_smi64.so"};
  KernelDirectories kernel;
};

struct Discovery {
  /// Those of drivers[0] first, in its order, then of the next; then those without a driver.
  std::vector<FoundAccelerator> accelerators;
  std::vector<std::unique_ptr<AcceleratorDriver>> drivers;  ///< that work
  std::vector<std::string> kernel_drivers;  ///< of accelerators that no such driver tells of
  std::vector<std::string> notes;
};

/// What there is, with its types. O(catalog) beside the drivers' own time, which may be seconds.
[[nodiscard]] Discovery discover_accelerators(const Catalog& catalog, Storage& storage,
                                              const DiscoverySources& sources);

/// The type of the catalog that a maker's name is an id, a name or an alias of, without regard to
/// case; of processors, one that the name contains ("AMD EPYC 9654 96-Core Processor"). nullptr:
/// none.
[[nodiscard]] const Accelerator* accelerator_named(const Catalog& catalog, std::string_view name);

/// Fills in what the node offers: the type most of its accelerators are of (ties: the first), or,
/// where there are none, its processors if the catalog has them. Others are noted.
void offer(Discovery& discovery, const Catalog& catalog, NodeInventory& inventory);

}  // namespace orrery

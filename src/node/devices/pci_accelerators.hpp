// node/devices/pci_accelerators.hpp - accelerators that are found without a library of their maker:
// those whose identity on PCI is in a list, and whose driver has made device files.
//
// A function of two directories of files. Cost: a file or two for each device on PCI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "node/devices/accelerator_driver.hpp"
#include "node/machine/kernel_directories.hpp"

namespace orrery {

struct PciAccelerators {
  std::vector<FoundAccelerator> found;  ///< with their types, by address
  std::vector<std::string> drivers;     ///< of the kernel, with their versions
  std::vector<std::string> notes;       ///< what is there but cannot be used, and why
};

/// Finds AWS Neuron (/dev/neuronN) and Google TPU (/dev/accelN, or /dev/vfio/N).
[[nodiscard]] PciAccelerators find_pci_accelerators(Storage& storage,
                                                    const KernelDirectories& directories);

/// Counts files of `directory` whose name is `prefix` and a number.
[[nodiscard]] std::size_t count_device_files(Storage& storage, const std::string& directory,
                                             std::string_view prefix);

/// Returns the files that the kernel's graphics drivers have made for a device on PCI, by name
/// below the directory of devices: "dri/card0", "dri/renderD128".
[[nodiscard]] std::vector<std::string> render_files(Storage& storage,
                                                    const KernelDirectories& directories,
                                                    const std::string& bus);

/// Returns the NUMA node of a device on PCI; none: it is next to all alike, or unknown.
[[nodiscard]] std::optional<int> numa_of(Storage& storage, const KernelDirectories& directories,
                                         const std::string& bus);

}  // namespace orrery

// node/pci_accelerators.hpp - accelerators that no library of their maker need tell of: those that
// a list of identities on PCI knows, and whose driver has made device files.
//
// A function of two directories of files. Cost: a file or two for each device on PCI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "node/accelerator_driver.hpp"
#include "node/kernel_directories.hpp"

namespace orrery {

struct PciAccelerators {
  std::vector<FoundAccelerator> found;  ///< with their types, by address
  std::vector<std::string> drivers;     ///< of the kernel, with their versions
  std::vector<std::string> notes;       ///< what is there and cannot be used, and why
};

/// AWS Neuron (/dev/neuronN) and Google TPU (/dev/accelN, or /dev/vfio/N).
[[nodiscard]] PciAccelerators find_pci_accelerators(Storage& storage,
                                                    const KernelDirectories& directories);

/// Files of `directory` that are `prefix` and a number.
[[nodiscard]] std::size_t count_device_files(Storage& storage, const std::string& directory,
                                             std::string_view prefix);

/// Names below the directory of devices of the files that the kernel's graphics drivers have made
/// for a device on PCI: "dri/card0", "dri/renderD128".
[[nodiscard]] std::vector<std::string> render_files(Storage& storage,
                                                    const KernelDirectories& directories,
                                                    const std::string& bus);

/// The NUMA node of a device on PCI; none: it is next to all alike, or nobody knows.
[[nodiscard]] std::optional<int> numa_of(Storage& storage, const KernelDirectories& directories,
                                         const std::string& bus);

}  // namespace orrery

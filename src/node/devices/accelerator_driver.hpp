// node/devices/accelerator_driver.hpp - accelerators as the library of their maker shows them: what
// is there, what it reads now, and how fast it may run.
//
// Made by open_nvml() and open_rocm_smi() (node/devices/nvml_driver.cpp,
// node/devices/rocm_smi_driver.cpp) where Made by open_nvml() and open_rocm_smi()
// (node/devices/nvml_driver.cpp, node/devices/rocm_smi_driver.cpp) where their library is
// installed; the caller owns it. It is used by one thread at a time. A call may take as long as the
// kernel's driver does, and that may hang: it belongs on no event loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

struct FoundAccelerator {
  std::uint32_t number = 0;           ///< number that its driver and programs use
  std::optional<std::size_t> driver;  ///< index in Discovery::drivers; none: no driver reports it
  std::string name;                   ///< as its maker calls it
  std::string type;                   ///< catalog id; empty: the catalog does not know the name
  std::string serial;
  std::string bus;          ///< address on PCI, "0000:1b:00.0"; empty: not known
  std::optional<int> numa;  ///< its NUMA node
  std::uint64_t memory_bytes = 0;
  /// Paths of the device files that give access to it alone; those that all have in common
  /// (/dev/nvidiactl, /dev/kfd) are not among them. A driver names its own below /dev.
  std::vector<std::string> files;
};

class AcceleratorDriver {
 public:
  virtual ~AcceleratorDriver() = default;
  /// "NVML, driver 550.54.15".
  [[nodiscard]] virtual const std::string& version() const = 0;
  /// Returns all accelerators: the same ones at every call, numbered from 0. Errors name the device
  /// and the call.
  [[nodiscard]] virtual Result<std::vector<FoundAccelerator>> find() = 0;
  /// Reads the device; a value that it does not report is absent. Precondition: find() named it.
  [[nodiscard]] virtual AcceleratorReading read(std::uint32_t device) = 0;
  /// Holds the device at `clock` of its full one, in (0, 1], until another is set; at 1 it runs as
  /// it was shipped. That limits its power to what power_at_clock() (perf/site/power.hpp) gives a
  /// full load at that clock. Where the maker lets clocks be locked it limits these, too: a lighter
  /// load would otherwise run faster and draw more than was planned for it. Errors: which call the
  /// driver refused, and why. Precondition: find() named it.
  [[nodiscard]] virtual Status set_clock(std::uint32_t device, double clock) = 0;
};

/// nullptr: none of `libraries` is installed. Errors: one is, and does not work.
[[nodiscard]] Result<std::unique_ptr<AcceleratorDriver>> open_nvml(
    std::span<const std::string> libraries);
[[nodiscard]] Result<std::unique_ptr<AcceleratorDriver>> open_rocm_smi(
    std::span<const std::string> libraries);

}  // namespace orrery

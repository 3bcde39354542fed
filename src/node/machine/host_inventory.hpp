// node/machine/host_inventory.hpp - what the kernel reports of the machine that this process runs
// on.
#pragma once

#include "base/env.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// Returns cores this process may use, memory, kernel, host name, firmware, processors.
/// Accelerators and their drivers are not included (node/devices/discovery.hpp).
[[nodiscard]] NodeInventory host_inventory();

/// Returns a number that changes with each boot of the machine. Error: the kernel does not report
/// it.
[[nodiscard]] Result<std::uint64_t> boot_number(Storage& storage);

}  // namespace orrery

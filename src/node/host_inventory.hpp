// node/host_inventory.hpp - what the kernel says of the machine that this process runs on.
#pragma once

#include "base/env.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// Cores this process may use, memory, kernel, host name, firmware, processors. Of accelerators and
/// their drivers it says nothing (node/discovery.hpp).
[[nodiscard]] NodeInventory host_inventory();

/// Another number after each boot of the machine. Error: the kernel does not say.
[[nodiscard]] Result<std::uint64_t> boot_number(Storage& storage);

}  // namespace orrery

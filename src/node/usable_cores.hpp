// node/usable_cores.hpp - which processors this process may use, by the kernel's word alone: a
// keeper asks, too, and links nothing for it.
#pragma once

#include <cstdint>

#include "base/env.hpp"

namespace orrery {

/// Hardware threads that this process may use; 1 where the kernel does not say.
[[nodiscard]] std::uint32_t usable_threads();

/// Cores this process may use, each once however many hardware threads it has; where the kernel
/// does not tell which threads are of one core, the threads. O(threads) small files are read.
[[nodiscard]] std::uint32_t physical_cores(Storage& storage);

}  // namespace orrery

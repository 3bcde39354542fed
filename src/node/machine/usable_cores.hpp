// node/machine/usable_cores.hpp - the processors that this process may use, as the kernel reports
// them, without a library: a keeper, too, asks for them.
#pragma once

#include <cstdint>

#include "base/env.hpp"

namespace orrery {

/// Hardware threads that this process may use; 1 where the kernel does not say.
[[nodiscard]] std::uint32_t usable_threads();

/// Returns the cores this process may use, each once however many hardware threads it has; where
/// the kernel does not report which threads share a core, the threads. O(threads) small files are
/// read.
[[nodiscard]] std::uint32_t physical_cores(Storage& storage);

}  // namespace orrery

// node/machine/openblas_core.hpp - the kernels that OpenBLAS should use on a CPU that Debian 12's
// release, 0.3.21, does not know.
//
// On an Intel CPU newer than itself that release uses its oldest kernels, several times slower than
// those the CPU could run. Which CPUs these are was measured: the library itself was asked for its
// core (openblas_get_corename) under every model number from 0 to 255. On all others, AMD's newest
// included, it chooses the best kernels, and so may a newer release: there nothing is set.
#pragma once

#include <string_view>

namespace orrery {

/// Returns the value of OPENBLAS_CORETYPE for the first CPU of this /proc/cpuinfo; empty: none is
/// needed.
[[nodiscard]] std::string_view openblas_core_type(std::string_view cpuinfo);

}  // namespace orrery

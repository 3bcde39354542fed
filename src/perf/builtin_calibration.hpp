// perf/builtin_calibration.hpp - the catalog/calibration*.yaml files this program was built with.
#pragma once

#include <span>

#include "base/format/embedded_file.hpp"

namespace orrery {

/// In name order. Defined in a source generated at build time (cmake/EmbedFiles.cmake).
[[nodiscard]] std::span<const EmbeddedFile> builtin_calibration();

}  // namespace orrery

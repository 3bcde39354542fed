// workload/builtin_models.hpp - the catalog/models/*.yaml files this program was built with.
#pragma once

#include <span>

#include "base/format/embedded_file.hpp"

namespace orrery {

/// The files in name order. Defined in a source generated at build time (cmake/EmbedFiles.cmake).
[[nodiscard]] std::span<const EmbeddedFile> builtin_models();

}  // namespace orrery

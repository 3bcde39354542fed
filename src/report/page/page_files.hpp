// report/page/page_files.hpp - the style sheet and the script of pages, built into this program.
#pragma once

#include <span>

#include "base/format/embedded_file.hpp"

namespace orrery {

/// page.css, then page.js. Defined in a source generated at build time (cmake/EmbedFiles.cmake).
[[nodiscard]] std::span<const EmbeddedFile> page_files();

}  // namespace orrery

// verbs/output_file.hpp - writes a picture or a report into the file the user named.
#pragma once

#include <string>

#include "base/error.hpp"

namespace orrery {

/// A regular file is replaced as a whole, by way of a file beside it, so that no reader ever sees
/// half a picture; a link is followed; anything else (a pipe, a device) is written to as it is.
[[nodiscard]] Status write_output_file(const std::string& path, const std::string& text);

}  // namespace orrery

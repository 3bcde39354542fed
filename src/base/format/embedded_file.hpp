// base/format/embedded_file.hpp - a file compiled into the program.
#pragma once

#include <string_view>

namespace orrery {

struct EmbeddedFile {
  std::string_view file;  ///< its path in the repository, for messages
  std::string_view text;
};

}  // namespace orrery

// node/machine/kernel_file.hpp - the text of a file of /proc or /sys.
//
// A process may end between the opening of its file and the reading of it; an iterator over the
// stream's buffer would throw then. Cost: O(bytes).
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace orrery {

/// Returns the file's text; empty where it is empty or cannot be read.
[[nodiscard]] inline std::string kernel_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace orrery

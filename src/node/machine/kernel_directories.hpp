// node/machine/kernel_directories.hpp - where the kernel shows its devices; tests use directories
// of their own.
#pragma once

#include <string>

namespace orrery {

struct KernelDirectories {
  std::string devices = "/dev";
  std::string system = "/sys";
  std::string processes = "/proc";
};

}  // namespace orrery

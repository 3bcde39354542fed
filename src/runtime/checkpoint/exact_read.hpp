// runtime/checkpoint/exact_read.hpp - reads exactly the bytes asked for, or returns an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

struct FilePlace {
  std::string path;  ///< for messages
  std::uint64_t offset = 0;
};

/// Fills `out` from `place` of an open file. Error: the file ends earlier, or the system cannot
/// read it.
[[nodiscard]] Status read_exactly(const FileDescriptor& fd, const FilePlace& place,
                                  std::span<char> out);

}  // namespace orrery

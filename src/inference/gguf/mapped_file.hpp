// inference/gguf/mapped_file.hpp - the bytes of a file, mapped for reading.
//
// Owns the mapping; movable, immutable, safe to read from every thread. A file that others shorten
// while it is mapped ends the process (SIGBUS), as with every mapping. Cost: the pages that are
// read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

class MappedFile {
 public:
  /// Environment error: it cannot be read, or is no regular file. An empty file has no bytes.
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes_;
};

}  // namespace orrery

// tests/fuzz/first_byte.hpp - lets the first byte of an input choose which reader it is for.
//
// Used by targets that fuzz several readers. Cost: that of the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace orrery {

struct TaggedReader {
  char tag = 0;
  void (*read)(std::string_view bytes) = nullptr;
};

/// Gives the input behind its first byte to the reader of that tag, or to the last one. Returns
/// what a target returns. Precondition: there is a reader.
inline int read_by_first_byte(const std::uint8_t* data, std::size_t size,
                              std::span<const TaggedReader> readers) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const TaggedReader* chosen = &readers.back();
  for (const TaggedReader& each : readers) {
    if (each.tag == static_cast<char>(*data)) chosen = &each;
  }
  chosen->read(bytes);
  return 0;
}

}  // namespace orrery

#include "base/format/xxh3.hpp"

// The library's functions inlined: a program that is linked without it (orrery-keeper) may read
// what others wrote.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace orrery {

std::uint64_t xxh3(std::string_view bytes, std::uint64_t before) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), before);
}

}  // namespace orrery

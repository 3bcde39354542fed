// base/format/xxh3.hpp - the 64-bit XXH3 hash of bytes, by the library libxxhash.
//
// The checksum of what is written now and read later by any version: frames of the journal,
// snapshots, the high-water mark of a store. The value is the same on every CPU and fixed by the
// published algorithm. It finds damage, not forgery. A pure function; any thread may call it.
// Cost: about a nanosecond for each 16 bytes, and a few nanoseconds a call.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// The hash of `bytes` under the seed `before`. With the hash of the previous part as the seed it
/// covers all parts before this one, and where they end. O(size).
[[nodiscard]] std::uint64_t xxh3(std::string_view bytes, std::uint64_t before = 0);

}  // namespace orrery

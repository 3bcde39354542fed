// base/format/checksum.hpp - 64 bits that show whether bytes are unchanged since they were written,
// chained: the checksum of a part covers all parts before it.
//
// Its value is the same on every CPU. It finds damage, not forgery: two texts of one checksum can
// be made on purpose. Cost: about a nanosecond each 16 bytes, and a few nanoseconds a call.
//
// Method: words of 8 bytes, little endian, are multiplied two by two to 128 bits whose halves are
// joined by exclusive or ("multiply and fold", as in the hash functions of the family of wyhash by
// Wang Yi); the state enters each product and, rotated, each sum, so that no word can erase it. The
// last part is padded with zeros and the length closes it, so that zeros at the end count.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// Returns the checksum of `bytes` that follow data with the checksum `before` (0: none). Two parts
/// do not have the checksum of the whole: where the parts end is part of it. O(size).
[[nodiscard]] std::uint64_t checksum(std::string_view bytes, std::uint64_t before);

/// Returns the checksum of a single large block: four chains side by side, whose products a CPU
/// overlaps, and then a checksum() of the four and of the rest. The value differs from that of
/// checksum(), is as good, and takes about a third of the time. O(size).
[[nodiscard]] std::uint64_t block_checksum(std::string_view bytes);

}  // namespace orrery

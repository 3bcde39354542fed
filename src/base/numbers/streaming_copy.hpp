// base/numbers/streaming_copy.hpp - a memcpy into memory that its caller does not read again, or
// that other cores have in their caches.
//
// Stores go past the cache where the CPU can, so a line is not read before it is overwritten, no
// copy waits until another core has let go of it, and what is in the cache stays. Four pages are
// copied side by side, each ahead of its use, as memcpy of the C library does from a size that few
// tensors have: memory serves several pages at once, and no prefetcher of the hardware crosses from
// one to the next.
#pragma once

#include <cstddef>

namespace orrery {

/// Copies `bytes`. Precondition: the two do not overlap; `to` is a multiple of 16. A thread that is
/// started afterwards sees them. O(bytes), at the speed of memory.
void streaming_copy(char* to, const std::byte* from, std::size_t bytes);

}  // namespace orrery

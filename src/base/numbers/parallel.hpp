// base/numbers/parallel.hpp - the same work on each of many items, by several threads.
//
// Threads live for one call. Items are taken in their order, so that everything before an item that
// was taken has been taken, too. Cost: an atomic increment an item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery {

/// Whether to take more items after this one.
enum class Onward : std::uint8_t { kGo, kStop };

struct ParallelItems {
  std::size_t items = 0;
  std::size_t threads = 1;  ///< at least one is used, and no more than there are items
};

/// Calls `work` with 0 to items - 1, from several threads at once, and returns when all calls have.
/// Items that were not taken when one said kStop are left out.
void parallel_each(const ParallelItems& of, const std::function<Onward(std::size_t)>& work);

}  // namespace orrery

#include "base/numbers/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace orrery {

void parallel_each(const ParallelItems& of, const std::function<Onward(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  const auto take = [&] {
    while (!stop) {
      const std::size_t item = next++;
      if (item >= of.items) return;
      if (work(item) == Onward::kStop) stop = true;
    }
  };
  std::vector<std::jthread> threads;
  const std::size_t used = std::min(std::max<std::size_t>(of.threads, 1), of.items);
  threads.reserve(used);
  for (std::size_t t = 0; t < used; ++t) threads.emplace_back(take);
}

}  // namespace orrery

#include "node/machine/usable_cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <set>
#include <string>

namespace orrery {
namespace {

/// Returns the first CPU where the kernel does not say.
cpu_set_t affinity() {
  cpu_set_t threads;
  CPU_ZERO(&threads);
  if (::sched_getaffinity(0, sizeof threads, &threads) != 0) CPU_SET(0, &threads);
  return threads;
}

}  // namespace

std::uint32_t usable_threads() {
  const cpu_set_t threads = affinity();
  return static_cast<std::uint32_t>(CPU_COUNT(&threads));
}

std::uint32_t physical_cores(Storage& storage) {
  const cpu_set_t threads = affinity();
  std::set<std::string> cores;  // each as the list of its threads
  for (int thread = 0; thread < CPU_SETSIZE; ++thread) {
    if (!CPU_ISSET(thread, &threads)) continue;
    const std::string own = fmt::format("{}", thread);
    cores.insert(
        storage
            .read_file("/sys/devices/system/cpu/cpu" + own + "/topology/thread_siblings_list", 4096)
            .value_or(own));
  }
  return static_cast<std::uint32_t>(cores.size());
}

}  // namespace orrery

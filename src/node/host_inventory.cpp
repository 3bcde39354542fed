#include "node/host_inventory.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/checksum.hpp"
#include "node/host_topology.hpp"

namespace orrery {

NodeInventory host_inventory() {
  NodeInventory found;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = ::sched_getaffinity(0, sizeof cores, &cores) == 0;
  found.cores = known ? static_cast<std::uint32_t>(CPU_COUNT(&cores)) : 1;
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  found.memory_bytes = static_cast<std::uint64_t>(std::max(pages, 0L)) *
                       static_cast<std::uint64_t>(std::max(page_bytes, 0L));
  utsname names{};
  if (::uname(&names) == 0) {
    found.kernel = fmt::format("{} {}", names.sysname, names.release);
    found.machine = names.nodename;
  }
  // Without it everything works all the same, so an error of hwloc is none here.
  if (const Result<HostTopology> topology = host_topology(); topology) {
    found.processor = topology->processor;
    found.packages = topology->packages;
    found.numa_nodes = static_cast<std::uint32_t>(topology->numa.size());
  }
  return found;
}

Result<std::uint64_t> boot_number(Storage& storage) {
  auto text = storage.read_file("/proc/sys/kernel/random/boot_id", 256);
  if (!text) return forward_error(text);
  return checksum(*text, 0);
}

}  // namespace orrery

#include "node/machine/host_inventory.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/format/checksum.hpp"
#include "node/machine/host_topology.hpp"
#include "node/machine/usable_cores.hpp"

namespace orrery {
NodeInventory host_inventory() {
  NodeInventory found;
  found.cores = usable_threads();
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  found.memory_bytes = static_cast<std::uint64_t>(std::max(pages, 0L)) *
                       static_cast<std::uint64_t>(std::max(page_bytes, 0L));
  utsname names{};
  if (::uname(&names) == 0) {
    found.kernel = fmt::format("{} {}", names.sysname, names.release);
    found.machine = names.nodename;
  }
  std::ifstream vendor("/sys/class/dmi/id/bios_vendor");
  std::ifstream version("/sys/class/dmi/id/bios_version");
  std::string of;
  if (std::getline(vendor, of) && std::getline(version, found.firmware)) {
    found.firmware = fmt::format("{} {}", of, found.firmware);
  }
  // The inventory works without topology, so an error of hwloc is ignored here.
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

#include "node/host_inventory.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/checksum.hpp"
#include "node/machine_facts.hpp"

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
  for (const DeviceFacts& devices : find_devices("")) {
    if (devices.driver.empty()) continue;
    found.driver += found.driver.empty() ? "" : ", ";
    found.driver += fmt::format("{} {}", devices.vendor, devices.driver);
  }
  std::ifstream vendor("/sys/class/dmi/id/bios_vendor");
  std::ifstream version("/sys/class/dmi/id/bios_version");
  std::string of;
  if (std::getline(vendor, of) && std::getline(version, found.firmware)) {
    found.firmware = fmt::format("{} {}", of, found.firmware);
  }
  return found;
}

Result<std::uint64_t> boot_number(Storage& storage) {
  auto text = storage.read_file("/proc/sys/kernel/random/boot_id", 256);
  if (!text) return forward_error(text);
  return checksum(*text, 0);
}

}  // namespace orrery

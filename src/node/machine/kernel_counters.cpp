#include "node/machine/kernel_counters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kFileMax = std::size_t{4} << 20;

std::uint64_t number_in(Storage& storage, const std::string& path) {
  const std::string text = storage.read_file(path, 4096).value_or("");
  std::uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> names_in(Storage& storage, const std::string& directory) {
  return storage.list(directory).value_or(std::vector<std::string>());
}

/// "cpu  user nice system idle iowait irq softirq steal guest guest_nice": guests are in user.
void read_cpu(const std::string& stat, KernelCounters& counters) {
  std::istringstream words(stat);
  std::string name;
  words >> name;
  if (name != "cpu") return;
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kWaiting = 4;
  constexpr std::size_t kFields = 8;
  for (std::size_t at = 0; at < kFields; ++at) {
    std::uint64_t ticks = 0;
    if (!(words >> ticks)) return;
    counters.cpu_total += ticks;
    if (at != kIdle && at != kWaiting) counters.cpu_busy += ticks;
  }
}

/// "MemTotal:       32947584 kB", a line each.
void read_memory(const std::string& meminfo, KernelCounters& counters) {
  std::istringstream lines(meminfo);
  std::uint64_t available = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (!(words >> name >> kibibytes)) continue;
    if (name == "MemTotal:") counters.memory_bytes = kibibytes * 1024;
    if (name == "MemAvailable:") available = kibibytes * 1024;
  }
  counters.memory_used_bytes = counters.memory_bytes - std::min(available, counters.memory_bytes);
}

/// Hardware interfaces count alone where there are any: bridges and tunnels count the same bytes
/// again.
struct Interfaces {
  KernelCounters hardware, other;
  bool any_hardware = false;
};

/// "  eth0: bytes packets errs drop fifo frame compressed multicast bytes packets errs ..."
void read_interfaces(Storage& storage, const KernelDirectories& directories,
                     KernelCounters& counters) {
  const std::string text =
      storage.read_file(directories.processes + "/net/dev", kFileMax).value_or("");
  std::istringstream lines(text);
  Interfaces all;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string name =
        line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '));
    std::array<std::uint64_t, 11> fields{};
    std::istringstream words(line.substr(colon + 1));
    for (std::uint64_t& field : fields) words >> field;
    if (name == "lo") continue;
    const bool hardware =
        storage.list(directories.system + "/class/net/" + name + "/device").has_value();
    all.any_hardware = all.any_hardware || hardware;
    KernelCounters& sum = hardware ? all.hardware : all.other;
    sum.received_bytes += fields[0];
    sum.sent_bytes += fields[8];
    sum.network_errors += fields[2] + fields[10];
  }
  const KernelCounters& sum = all.any_hardware ? all.hardware : all.other;
  counters.received_bytes += sum.received_bytes;
  counters.sent_bytes += sum.sent_bytes;
  counters.network_errors += sum.network_errors;
}

void read_ports(Storage& storage, const KernelDirectories& directories, KernelCounters& counters) {
  constexpr std::uint64_t kBytesPerWord = 4;  // of an InfiniBand port's counters of data
  const std::string devices = directories.system + "/class/infiniband";
  for (const std::string& device : names_in(storage, devices)) {
    const std::string ports = devices + "/" + device + "/ports";
    for (const std::string& port : names_in(storage, ports)) {
      const std::string path = ports + "/" + port + "/counters/";
      counters.received_bytes += kBytesPerWord * number_in(storage, path + "port_rcv_data");
      counters.sent_bytes += kBytesPerWord * number_in(storage, path + "port_xmit_data");
      counters.network_errors += number_in(storage, path + "port_rcv_errors");
      for (const char* name : {"symbol_error", "link_error_recovery", "link_downed"}) {
        counters.link_errors += number_in(storage, path + name);
      }
    }
  }
}

}  // namespace

KernelCounters read_kernel_counters(Storage& storage, const KernelDirectories& directories) {
  KernelCounters counters;
  const std::string& processes = directories.processes;
  read_cpu(storage.read_file(processes + "/stat", kFileMax).value_or(""), counters);
  read_memory(storage.read_file(processes + "/meminfo", kFileMax).value_or(""), counters);
  read_interfaces(storage, directories, counters);
  read_ports(storage, directories, counters);
  return counters;
}

double cpu_busy_between(const KernelCounters& earlier, const KernelCounters& later) {
  if (later.cpu_total <= earlier.cpu_total || later.cpu_busy < earlier.cpu_busy) return 0;
  return static_cast<double>(later.cpu_busy - earlier.cpu_busy) /
         static_cast<double>(later.cpu_total - earlier.cpu_total);
}

}  // namespace orrery

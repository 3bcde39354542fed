#include "node/machine/machine_facts.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/system/file_descriptor.hpp"
#include "node/agent/agents_here.hpp"
#include "node/launch/launch_environment.hpp"
#include "node/machine/control_group.hpp"
#include "node/machine/host_inventory.hpp"
#include "node/machine/kernel_file.hpp"
#include "node/machine/openblas_core.hpp"

namespace orrery {
namespace {

std::string first_line_of(const std::string& path) {
  const std::string all = kernel_file(path);
  return all.substr(0, all.find('\n'));
}

std::string last_failure() { return std::generic_category().message(errno); }

/// Returns the output of a program in PATH; empty where there is none.
std::string output_of(const char* command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command, "re"), ::pclose);
  std::string text;
  if (pipe == nullptr) return text;
  for (int byte = std::fgetc(pipe.get()); byte != EOF; byte = std::fgetc(pipe.get())) {
    text += static_cast<char>(byte);
  }
  return text;
}

// --- Disk ---------------------------------------------------------------------------------------

std::string network_or_memory(std::int64_t magic) {
  switch (magic) {
    case NFS_SUPER_MAGIC:
      return "nfs";
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
      return "smb";
    case TMPFS_MAGIC:
      return "tmpfs";
    default:
      return "";
  }
}

/// Returns the median of a few writes; Duration::max(): the disk cannot be written.
Duration sync_time(const Clock& clock, int file) {
  constexpr int kTimes = 7;
  constexpr std::size_t kBytes = 4'096;
  const std::string bytes(kBytes, 'o');
  std::vector<Duration> times;
  times.reserve(kTimes);
  for (int i = 0; i < kTimes; ++i) {
    const Instant begun = clock.now_monotonic();
    if (::write(file, bytes.data(), bytes.size()) != std::ssize(bytes)) break;
    if (::fdatasync(file) != 0) break;
    times.push_back(clock.now_monotonic() - begun);
  }
  if (times.size() < kTimes) return Duration::max();
  std::ranges::sort(times);
  return times[times.size() / 2];
}

DiskFacts look_at_disk(const Clock& clock, const std::string& directory) {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::absolute(directory, failed).lexically_normal();
  while (path.has_relative_path() && !std::filesystem::is_directory(path, failed)) {
    path = path.parent_path();
  }
  DiskFacts facts{.path = path.string()};
  std::string name = (path / "orrery-doctor-XXXXXX").string();
  const FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) {
    facts.trouble = last_failure();
    return facts;
  }
  (void)::unlink(name.c_str());
  struct statfs system{};
  if (::fstatfs(file.get(), &system) == 0) {
    facts.free_bytes =
        static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
    facts.kind = network_or_memory(static_cast<std::int64_t>(system.f_type));
  }
  facts.sync = sync_time(clock, file.get());
  if (facts.sync == Duration::max()) facts.trouble = last_failure();
  return facts;
}

// --- Network ------------------------------------------------------------------------------------

std::string listen_trouble() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = reinterpret_cast<const sockaddr*>(&loopback);
  const bool listens = socket.valid() && ::bind(socket.get(), address, sizeof loopback) == 0 &&
                       ::listen(socket.get(), 1) == 0;
  return listens ? "" : last_failure();
}

bool is_loopback(const addrinfo& found) {
  constexpr std::uint32_t kNet = 127;
  if (found.ai_family == AF_INET) {
    const auto& address = *reinterpret_cast<const sockaddr_in*>(found.ai_addr);
    return ntohl(address.sin_addr.s_addr) >> 24 == kNet;
  }
  const auto& address = *reinterpret_cast<const sockaddr_in6*>(found.ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
}

std::string name_trouble(const std::string& machine) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(machine.c_str(), nullptr, &wanted, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (code != 0) return ::gai_strerror(code);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (!is_loopback(*each)) return "";
  }
  return "stands for loopback alone";
}

// --- Kernel -------------------------------------------------------------------------------------

void look_at_control_groups(MachineFacts& facts) {
  const Result<ControlGroupPlace> place = own_control_group(
      {.groups = kernel_file("/proc/self/cgroup"), .mounts = kernel_file("/proc/self/mounts")});
  if (!place) return;
  facts.control_groups = place->version == ControlGroupPlace::Version::kV2 ? "v2" : "v1";
  const auto made = ControlGroup::make(*place, fmt::format("orrery-doctor-{}", ::getpid()));
  if (!made) facts.control_group_trouble = made.error().message;
}

bool goes_back(const Clock& clock) {
  constexpr int kReads = 100'000;
  Instant last = clock.now_monotonic();
  for (int i = 0; i < kReads; ++i) {
    const Instant next = clock.now_monotonic();
    if (next < last) return true;
    last = next;
  }
  return false;
}

bool synchronised() {
  timex told{};
  const int state = ::adjtimex(&told);
  return state >= 0 && state != TIME_ERROR && (told.status & STA_UNSYNC) == 0;
}

// --- Programs and libraries ---------------------------------------------------------------------

PythonFacts look_at_python() {
  // Finding a package does not load it, which for some takes seconds.
  std::istringstream words(output_of(
      "python3 -c 'import importlib.util as u, platform as p; print(p.python_version(), *[n for n "
      "in (\"torch\", \"jax\", \"numpy\") if u.find_spec(n)])' 2>/dev/null </dev/null"));
  PythonFacts facts;
  words >> facts.version;
  for (std::string package; words >> package;) facts.packages.push_back(package);
  return facts;
}

/// Whether the dynamic linker finds the library and all that it needs. It stays loaded: some start
/// threads and cannot be unloaded.
void* load(const std::string& library) { return ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL); }

/// Reads OpenBLAS by the function names that its headers document.
OpenBlasFacts look_at_openblas() {
  using Text = char* (*)();
  void* const library = load("libopenblas.so.0");
  if (library == nullptr) return {};
  const auto config = reinterpret_cast<Text>(::dlsym(library, "openblas_get_config"));
  const auto kernels = reinterpret_cast<Text>(::dlsym(library, "openblas_get_corename"));
  if (config == nullptr || kernels == nullptr) return {};
  return {config(), kernels()};
}

// --- Accelerators -------------------------------------------------------------------------------

std::vector<DeviceFacts> devices_of(const Discovery& accelerators) {
  std::vector<DeviceFacts> devices;
  for (const FoundAccelerator& each : accelerators.accelerators) {
    const auto known = std::find_if(devices.begin(), devices.end(), [&](const DeviceFacts& facts) {
      return facts.name == each.name;
    });
    if (known != devices.end()) {
      ++known->count;
      continue;
    }
    devices.push_back({each.name, 1, {}});
    if (each.driver) devices.back().driver = accelerators.drivers.at(*each.driver)->version();
  }
  return devices;
}

}  // namespace

MachineFacts look_at_machine(const Clock& clock, const std::string& directory,
                             const Discovery& accelerators) {
  const Instant wall = clock.now_wall();
  const Instant monotonic = clock.now_monotonic();
  const NodeInventory host = host_inventory();
  MachineFacts facts{.machine = host.machine,
                     .cores = host.cores,
                     .memory_bytes = host.memory_bytes,
                     .core_type = std::string(openblas_core_type(kernel_file("/proc/cpuinfo"))),
                     .listen_trouble = listen_trouble(),
                     .name_trouble = name_trouble(host.machine),
                     .disk = look_at_disk(clock, directory),
                     .python = look_at_python(),
                     .openblas = look_at_openblas(),
                     .devices = devices_of(accelerators),
                     .device_trouble = accelerators.notes,
                     .root_agents = root_agents_here(),
                     .processes_hidden = hides_processes(kernel_file("/proc/self/mounts"))};
  utsname names{};
  if (::uname(&names) == 0) facts.kernel = names.release;
  look_at_control_groups(facts);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts.open_files_max = files.rlim_cur;
  facts.clock = {
      .source = first_line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
      .backwards = goes_back(clock),
      .synchronised = synchronised()};
  facts.clock.jump = (clock.now_wall() - wall) - (clock.now_monotonic() - monotonic);
  return facts;
}

}  // namespace orrery

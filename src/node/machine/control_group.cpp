#include "node/machine/control_group.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "node/machine/kernel_file.hpp"

namespace orrery {
namespace {

/// Rounds of plain kills, a millisecond apart.
constexpr int kPlainKills = 20;

using Version = ControlGroupPlace::Version;

/// Whether `list`, separated by commas, has `word`.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// Returns where a tree is mounted: v2's (no controller), or v1's with the controller.
std::string mount_of(std::string_view mounts, std::string_view controller) {
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device, directory, type, options;
    fields >> device >> directory >> type >> options;
    if (controller.empty() ? type == "cgroup2" : type == "cgroup" && lists(options, controller)) {
      return directory;
    }
  }
  return "";
}

/// Returns this process's group: "0::/path" is v2's, "7:freezer:/path" one of v1's.
std::string group_of(std::string_view groups, std::string_view controller) {
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool found =
        controller.empty() ? line.starts_with("0::") : lists(controllers, controller);
    if (found) return line.substr(second + 1);
  }
  return "";
}

/// Directory of this process's group in one tree; empty: it is in none.
std::string own_directory(const ControlGroupTexts& texts, std::string_view controller) {
  const std::string mount = mount_of(texts.mounts, controller);
  const std::string group = group_of(texts.groups, controller);
  if (mount.empty() || group.empty()) return "";
  return group == "/" ? mount : mount + group;
}

bool try_write(const std::string& path, std::string_view word) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  return ::write(file.get(), word.data(), word.size()) == static_cast<ssize_t>(word.size());
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Makes a group. An empty one that an earlier keeper left is replaced; any other is an error.
bool make_group(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  return errno == EEXIST && ::rmdir(path.c_str()) == 0 && ::mkdir(path.c_str(), 0755) == 0;
}

/// Moves all members of one group into another one, also of another tree. Processes started
/// meanwhile begin in their parent's group, so it is done when a round finds no new one.
void bring_members(const std::string& from, int to) {
  constexpr int kRoundsMax = 100;
  std::set<pid_t> brought;
  for (int round = 0; round < kRoundsMax; ++round) {
    const std::size_t before = brought.size();
    std::ifstream members(from + "/cgroup.procs");
    for (pid_t member = 0; members >> member;) {
      if (!brought.insert(member).second) continue;
      const std::string number = fmt::format("{}", member);
      (void)!::write(to, number.data(), number.size());
    }
    if (brought.size() == before) return;
  }
}

FileDescriptor open_members(const std::string& path) {
  return FileDescriptor(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
}

tl::unexpected<Error> refusal(std::string_view what, const std::string& path) {
  return environment_error(
      fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(errno)));
}

}  // namespace

Result<ControlGroupPlace> own_control_group(const ControlGroupTexts& texts) {
  // On a host with both, v2 may be mounted without the right to kill; the freezer always works.
  if (const std::string freezer = own_directory(texts, "freezer"); !freezer.empty()) {
    return ControlGroupPlace{.version = Version::kV1Freezer,
                             .directory = freezer,
                             .cpu = own_directory(texts, "cpu"),
                             .memory = own_directory(texts, "memory"),
                             .pids = own_directory(texts, "pids"),
                             .devices = own_directory(texts, "devices"),
                             .unified = own_directory(texts, "")};
  }
  if (const std::string unified = own_directory(texts, ""); !unified.empty()) {
    return ControlGroupPlace{.version = Version::kV2, .directory = unified};
  }
  return environment_error("no control groups: neither v2 nor the freezer of v1 is mounted");
}

Result<std::unique_ptr<ControlGroup>> ControlGroup::make(const ControlGroupPlace& place,
                                                         const std::string& name) {
  const std::string path = place.directory + "/" + name;
  FileDescriptor members(make_group(path) ? open_members(path) : FileDescriptor());
  if (!members.valid()) return refusal("make the control group", path);
  return std::make_unique<ControlGroup>(place, name, std::move(members));
}

ControlGroup::ControlGroup(ControlGroupPlace place, std::string name, FileDescriptor members)
    : place_(std::move(place)), name_(std::move(name)), path_(place_.directory + "/" + name_) {
  members_.push_back(std::move(members));
}

ControlGroup::~ControlGroup() {
  (void)::rmdir(path_.c_str());
  // Removes groups that an earlier keeper of this name left, too.
  for (const std::string& above :
       {place_.cpu, place_.memory, place_.pids, place_.devices, place_.unified}) {
    if (!above.empty()) (void)::rmdir((above + "/" + name_).c_str());
  }
}

std::vector<int> ControlGroup::members() const {
  std::vector<int> all;
  all.reserve(members_.size());
  for (const FileDescriptor& each : members_) all.push_back(each.get());
  return all;
}

// --- Limits -------------------------------------------------------------------------------------

const ControlGroup::Controller ControlGroup::kCpu{"cpu", "CPUs", &ControlGroupPlace::cpu};
const ControlGroup::Controller ControlGroup::kMemory{"memory", "memory",
                                                     &ControlGroupPlace::memory};
const ControlGroup::Controller ControlGroup::kPids{"pids", "processes", &ControlGroupPlace::pids};
const ControlGroup::Controller ControlGroup::kDevices{"devices", "devices",
                                                      &ControlGroupPlace::devices};

Status ControlGroup::limit(const GroupLimits& limits) {
  // A limit that was never set need not be lifted.
  Status cpu = limits.cpu == 0 && cpu_.empty() ? Status() : limit_cpu(limits.cpu);
  Status memory = limits.memory == 0 && memory_.empty() ? Status() : limit_memory(limits.memory);
  return cpu ? memory : cpu;
}

/// Makes the group of this name below `above`, in another tree, with all members of this one.
Result<std::string> ControlGroup::join_group_in(const std::string& above) {
  std::string path = above + "/" + name_;
  FileDescriptor members(make_group(path) ? open_members(path) : FileDescriptor());
  if (!members.valid()) return refusal("make the control group", path);
  bring_members(path_, members.get());
  members_.push_back(std::move(members));
  return path;
}

/// Returns the directory where the controller is set for this group. In v1 that is a separate
/// group; in v2 the parent group has to delegate the controller, which it cannot while it has
/// processes itself.
Result<std::string> ControlGroup::directory_for(const Controller& controller) {
  if (place_.version == Version::kV2) {
    const std::string subtree = place_.directory + "/cgroup.subtree_control";
    if (!try_write(subtree, fmt::format("+{}", controller.name))) {
      return refusal(fmt::format("have the controller of {} from", controller.what), subtree);
    }
    return path_;
  }
  const std::string& above = place_.*controller.v1;
  if (above.empty()) {
    return environment_error(fmt::format("the controller of {} is not mounted", controller.what));
  }
  return join_group_in(above);
}

Status ControlGroup::limit_cpu(std::uint64_t thousandths) {
  constexpr std::uint64_t kPeriodUs = 100'000;
  constexpr std::uint64_t kQuotaUsMin = 1'000;  // of the kernel
  if (cpu_.empty()) {
    Result<std::string> directory = directory_for(kCpu);
    if (!directory) return forward_error(directory);
    cpu_ = *std::move(directory);
  }
  const std::uint64_t quota = std::max(kQuotaUsMin, thousandths * (kPeriodUs / 1000));
  if (place_.version == Version::kV2) {
    const std::string word = thousandths == 0 ? "max" : fmt::format("{} {}", quota, kPeriodUs);
    if (try_write(cpu_ + "/cpu.max", word)) return {};
  } else if (try_write(cpu_ + "/cpu.cfs_period_us", fmt::format("{}", kPeriodUs)) &&
             try_write(cpu_ + "/cpu.cfs_quota_us",
                       thousandths == 0 ? "-1" : fmt::format("{}", quota))) {
    return {};
  }
  return refusal("limit the CPUs of", cpu_);
}

Status ControlGroup::limit_memory(std::uint64_t bytes) {
  if (memory_.empty()) {
    Result<std::string> directory = directory_for(kMemory);
    if (!directory) return forward_error(directory);
    memory_ = *std::move(directory);
  }
  if (place_.version == Version::kV2) {
    (void)try_write(memory_ + "/memory.swap.max", bytes == 0 ? "max" : "0");
    if (try_write(memory_ + "/memory.max", bytes == 0 ? "max" : fmt::format("{}", bytes))) {
      return {};
    }
  } else {
    const std::string word = bytes == 0 ? "-1" : fmt::format("{}", bytes);
    // The limit with swap is never below the one without: it is raised first and lowered last.
    (void)try_write(memory_ + "/memory.limit_in_bytes", word);
    (void)try_write(memory_ + "/memory.memsw.limit_in_bytes", word);
    if (try_write(memory_ + "/memory.limit_in_bytes", word)) return {};
  }
  return refusal("limit the memory of", memory_);
}

Status ControlGroup::limit_processes(std::uint64_t count) {
  if (count == 0 && pids_.empty()) return {};
  if (pids_.empty()) {
    Result<std::string> directory = directory_for(kPids);
    if (!directory) return forward_error(directory);
    pids_ = *std::move(directory);
  }
  if (try_write(pids_ + "/pids.max", count == 0 ? "max" : fmt::format("{}", count))) return {};
  return refusal("limit the processes of", pids_);
}

// --- Devices ------------------------------------------------------------------------------------

Status ControlGroup::deny_devices(std::vector<DeviceNumber> denied) {
  std::sort(denied.begin(), denied.end());
  denied.erase(std::unique(denied.begin(), denied.end()), denied.end());
  if (denied == denied_) return {};
  const bool by_program = place_.version == Version::kV2 || place_.devices.empty();
  Status done = by_program ? deny_by_program(denied) : deny_in_v1(denied);
  if (done) denied_ = std::move(denied);
  return done;
}

Status ControlGroup::deny_in_v1(const std::vector<DeviceNumber>& denied) {
  if (devices_.empty()) {
    Result<std::string> directory = directory_for(kDevices);
    if (!directory) return forward_error(directory);
    devices_ = *std::move(directory);
  }
  const auto write_each = [this](const auto& of, const auto& without, const char* file) {
    return std::ranges::all_of(of, [&](const DeviceNumber& each) {
      return std::ranges::binary_search(without, each) ||
             try_write(devices_ + file, fmt::format("{} rwm", each.text()));
    });
  };
  if (write_each(denied, denied_, "/devices.deny") && write_each(denied_, denied, "/devices.allow"))
    return {};
  return refusal("deny devices to", devices_);
}

Status ControlGroup::deny_by_program(const std::vector<DeviceNumber>& denied) {
  if (devices_.empty()) {
    if (place_.version == Version::kV2) {
      devices_ = path_;
    } else if (place_.unified.empty()) {
      return environment_error("devices are not denied: no control group of devices is mounted");
    } else {
      Result<std::string> directory = join_group_in(place_.unified);
      if (!directory) return forward_error(directory);
      devices_ = *std::move(directory);
    }
  }
  Result<FileDescriptor> program = attach_device_filter(devices_, denied, device_program_);
  if (!program) return forward_error(program);
  device_program_ = *std::move(program);
  return {};
}

std::uint64_t ControlGroup::memory_kills() const {
  if (memory_.empty()) return 0;
  const bool v2 = place_.version == Version::kV2;
  std::ifstream counts(memory_ + (v2 ? "/memory.events" : "/memory.oom_control"));
  std::uint64_t count = 0;
  for (std::string name; counts >> name >> count;) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

// --- The end ------------------------------------------------------------------------------------

void ControlGroup::kill() {
  if (place_.version == Version::kV2) {
    (void)try_write(path_ + "/cgroup.kill", "1");
    return;
  }
  // Plain kills end nearly all groups. A keeper killed between freezing and thawing leaves a group
  // that neither runs nor ends, so it is frozen only where processes fork faster than they are
  // killed.
  for (int tries = 0; tries < kPlainKills; ++tries) {
    if (empty()) return;
    kill_members();
    (void)::poll(nullptr, 0, 1);
  }
  (void)try_write(path_ + "/freezer.state", "FROZEN");
  // A process in a system call is frozen a little later.
  for (int tries = 0; tries < 100 && first_word(path_ + "/freezer.state") != "FROZEN"; ++tries) {
  }
  kill_members();
  (void)try_write(path_ + "/freezer.state", "THAWED");
}

void ControlGroup::kill_members() const {
  std::ifstream members(path_ + "/cgroup.procs");
  for (pid_t member = 0; members >> member;) (void)::kill(member, SIGKILL);
}

void let_go_on(pid_t process) {
  const std::string group =
      group_of(kernel_file(fmt::format("/proc/{}/cgroup", process)), "freezer");
  const std::string mount = mount_of(kernel_file("/proc/self/mounts"), "freezer");
  const bool of_keeper = group.substr(group.rfind('/') + 1).starts_with(kGroupPrefix);
  if (of_keeper && !mount.empty()) (void)try_write(mount + group + "/freezer.state", "THAWED");
}

bool ControlGroup::empty() const { return first_word(path_ + "/cgroup.procs").empty(); }

}  // namespace orrery

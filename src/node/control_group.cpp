#include "node/control_group.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace orrery {
namespace {

using Version = ControlGroupPlace::Version;

/// Whether `list`, parted by commas, has `word`.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// Where a tree is mounted: of v2, or of v1 with the controller.
std::string mount_of(std::string_view mounts, Version version) {
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string device, directory, type, options;
    fields >> device >> directory >> type >> options;
    if (version == Version::kV2 ? type == "cgroup2"
                                : type == "cgroup" && lists(options, "freezer")) {
      return directory;
    }
  }
  return "";
}

/// "0::/path" is that of v2, "7:freezer:/path" one of v1.
std::string group_of(std::string_view groups, Version version) {
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool found =
        version == Version::kV2 ? line.starts_with("0::") : lists(controllers, "freezer");
    if (found) return line.substr(second + 1);
  }
  return "";
}

void write_word(const std::string& path, std::string_view word) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)!::write(file.get(), word.data(), word.size());
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

Result<ControlGroupPlace> own_control_group(const ControlGroupTexts& texts) {
  // With both, v2 may be mounted without the right to kill; the freezer is older than either.
  for (const Version version : {Version::kV1Freezer, Version::kV2}) {
    const std::string mount = mount_of(texts.mounts, version);
    const std::string group = group_of(texts.groups, version);
    if (mount.empty() || group.empty()) continue;
    return ControlGroupPlace{version, group == "/" ? mount : mount + group};
  }
  return environment_error("no control groups: neither v2 nor the freezer of v1 is mounted");
}

Result<std::unique_ptr<ControlGroup>> ControlGroup::make(const ControlGroupPlace& place,
                                                         const std::string& name) {
  const std::string path = place.directory + "/" + name;
  const auto failed = [&] {
    return environment_error(fmt::format("cannot make the control group {}: {}", path,
                                         std::generic_category().message(errno)));
  };
  // What an earlier keeper left is empty, or is not ours to take.
  if (::mkdir(path.c_str(), 0755) != 0 &&
      (errno != EEXIST || ::rmdir(path.c_str()) != 0 || ::mkdir(path.c_str(), 0755) != 0)) {
    return failed();
  }
  FileDescriptor members(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!members.valid()) return failed();
  return std::make_unique<ControlGroup>(place.version, path, std::move(members));
}

ControlGroup::ControlGroup(Version version, std::string path, FileDescriptor members)
    : version_(version), path_(std::move(path)), members_(std::move(members)) {}

ControlGroup::~ControlGroup() { (void)::rmdir(path_.c_str()); }

void ControlGroup::kill() {
  if (version_ == Version::kV2) return write_word(path_ + "/cgroup.kill", "1");
  write_word(path_ + "/freezer.state", "FROZEN");
  // Whoever is in a system call is held a little later.
  for (int tries = 0; tries < 100 && first_word(path_ + "/freezer.state") != "FROZEN"; ++tries) {
  }
  std::ifstream members(path_ + "/cgroup.procs");
  for (pid_t member = 0; members >> member;) (void)::kill(member, SIGKILL);
  write_word(path_ + "/freezer.state", "THAWED");
}

bool ControlGroup::empty() const { return first_word(path_ + "/cgroup.procs").empty(); }

}  // namespace orrery

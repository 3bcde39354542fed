#include "node/launch/run_directory.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "node/launch/attempt_directories.hpp"

namespace orrery {
namespace {

/// Others may open a file of theirs by its name.
constexpr mode_t kSearchable = 0711;

std::string link_of(const std::string& directory) { return directory + "/run"; }
std::string attempts_of(const std::string& directory) { return directory + "/attempts"; }

std::vector<std::string> names_in(const std::string& place) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(place, failed), end; !failed && at != end;
       at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

/// Only root can make entries there, so no other user can interfere.
std::optional<std::string> make_in_memory() {
  if (::geteuid() != 0) return std::nullopt;
  for (const char* place : {"/run", "/dev/shm"}) {
    struct statfs system{};
    if (::statfs(place, &system) != 0 || system.f_type != TMPFS_MAGIC) continue;
    std::string name = fmt::format("{}/orrery-XXXXXX", place);
    if (::mkdtemp(name.data()) == nullptr) continue;
    if (::chmod(name.c_str(), kSearchable) == 0) return name;
    (void)::rmdir(name.c_str());
  }
  return std::nullopt;
}

}  // namespace

void make_searchable(const std::string& directory) {
  (void)::chmod(directory.c_str(), kSearchable);
}

Result<std::string> own_run_directory(const std::string& directory) {
  const std::string link = link_of(directory);
  std::error_code none;
  const std::string target = std::filesystem::read_symlink(link, none).string();
  if (!none) {
    struct stat status{};
    const bool there = ::lstat(target.c_str(), &status) == 0;
    if (there && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid()) return target;
    if (there) {
      return environment_error(
          fmt::format("{}: leads to {}, which is no directory of this user's", link, target));
    }
    // Its target ended with its boot.
    (void)::unlink(link.c_str());
  }
  const std::optional<std::string> made = make_in_memory();
  if (!made) return attempts_of(directory);
  if (::symlink(made->c_str(), link.c_str()) == 0) return *made;
  const std::string why = std::generic_category().message(errno);
  (void)::rmdir(made->c_str());
  return environment_error(fmt::format("cannot make the link {}: {}", link, why));
}

void leave_run_directory(const std::string& directory) {
  const std::string link = link_of(directory);
  std::error_code none;
  const std::string target = std::filesystem::read_symlink(link, none).string();
  if (none) return;
  for (const std::string& name : names_in(target)) {
    const KeeperFiles files{attempts_of(directory) + "/" + name, target + "/" + name};
    if (seal_if_over(files)) std::filesystem::remove_all(files.run, none);
  }
  if (::rmdir(target.c_str()) == 0) (void)::unlink(link.c_str());
}

std::vector<std::string> attempt_locks(const std::string& directory) {
  std::vector<std::string> locks;
  for (const std::string& place : {attempts_of(directory), link_of(directory)}) {
    for (const std::string& name : names_in(place)) {
      locks.push_back(fmt::format("{}/{}/lock", place, name));
    }
  }
  return locks;
}

}  // namespace orrery

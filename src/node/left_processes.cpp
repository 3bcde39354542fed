#include "node/left_processes.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/file_descriptor.hpp"
#include "node/control_group.hpp"

namespace orrery {
namespace {

/// Whether it has this variable; one that has ended has none.
bool has_variable(pid_t process, const std::string& variable) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size() - 1);
    if (rest.substr(0, end) == variable) return true;
    rest.remove_prefix(end + 1);
  }
  return false;
}

/// The handle comes before the look, so that it is the process looked at that is killed.
bool kill_if_it_has(pid_t process, const std::string& variable) {
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!handle.valid() || !has_variable(process, variable)) return false;
  (void)::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
  let_go_on(process);
  return true;
}

}  // namespace

bool none_left(const KeeperFiles& files) {
  const std::string variable = "ORRERY_PROGRESS=" + files.progress();
  bool none = true;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename();
    pid_t process = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
    if (read.ec != std::errc() || process == ::getpid()) continue;
    if (kill_if_it_has(process, variable)) none = false;
  }
  return none;
}

}  // namespace orrery

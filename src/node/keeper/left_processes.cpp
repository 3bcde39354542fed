#include "node/keeper/left_processes.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/system/file_descriptor.hpp"
#include "node/machine/control_group.hpp"
#include "node/machine/kernel_file.hpp"

namespace orrery {
namespace {

enum class Look { kHas, kHasNot, kEmpty };

Look look_once(const std::string& environment_file, const std::string& variable) {
  const std::ifstream file(environment_file, std::ios::binary);
  if (!file) return Look::kHasNot;
  const std::string environment = kernel_file(environment_file);
  if (environment.empty()) return Look::kEmpty;
  std::string_view rest = environment;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size() - 1);
    if (rest.substr(0, end) == variable) return Look::kHas;
    rest.remove_prefix(end + 1);
  }
  return Look::kHasNot;
}

/// Whether the kernel is about to give the process its environment: between exec's change of memory
/// and the new stack the file reads empty. A zombie and a kernel thread have no memory at all; a
/// process that began without variables has an end of the environment (fields 23 and 51 of
/// proc(5)).
bool is_in_exec(pid_t process) {
  const std::string line = kernel_file(fmt::format("/proc/{}/stat", process));
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  constexpr int kMemorySize = 23, kEnvironmentEnd = 51;
  std::string field;
  bool has_memory = false;
  for (int number = 3; fields >> field; ++number) {
    if (number == kMemorySize) has_memory = field != "0";
    if (number == kEnvironmentEnd) return has_memory && field == "0";
  }
  return false;
}

/// Whether a process has this variable; an ended one has none. A process in exec is looked at
/// again.
bool has_variable(pid_t process, const std::string& variable) {
  constexpr int kLooksMax = 1000;
  const std::string environment_file = fmt::format("/proc/{}/environ", process);
  for (int look = 0; look < kLooksMax; ++look) {
    const Look seen = look_once(environment_file, variable);
    if (seen != Look::kEmpty) return seen == Look::kHas;
    // The process may have left exec between the two looks of the first round.
    if (!is_in_exec(process) && look > 0) return false;
    (void)::sched_yield();
  }
  return false;
}

/// Opens the handle before the look, so that the process that is killed is the one looked at.
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

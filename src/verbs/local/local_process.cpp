#include "verbs/local/local_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace orrery {
namespace {

std::string message_of(int error) { return std::generic_category().message(error); }

/// The attributes and file actions of one posix_spawn.
class SpawnSetup {
 public:
  SpawnSetup() {
    (void)posix_spawnattr_init(&attributes_);
    (void)posix_spawn_file_actions_init(&files_);
    sigset_t none;
    sigemptyset(&none);
    (void)posix_spawnattr_setsigmask(&attributes_, &none);
    (void)posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    (void)posix_spawnattr_destroy(&attributes_);
    (void)posix_spawn_file_actions_destroy(&files_);
  }
  void output_to(int file) {
    (void)posix_spawn_file_actions_adddup2(&files_, file, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&files_, file, STDERR_FILENO);
  }
  int spawn(pid_t& pid, std::vector<char*>& arguments) const {
    return ::posix_spawn(&pid, arguments.front(), &files_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t files_{};
};

}  // namespace

ProcessIdentity identity_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (pid <= 0 || !std::getline(file, line)) return {};
  // The name in parentheses may hold anything; behind it stand state and, 19 fields on, the start.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(line.substr(end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return {};
  constexpr int kFieldsBetween = 18;
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  std::uint64_t started = 0;
  if (!(fields >> started)) return {};
  return {pid, started};
}

ProcessHandle::ProcessHandle(const ProcessIdentity& process) {
  if (process.pid <= 0) return;
  FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (handle.valid() && identity_of(process.pid) == process) handle_ = std::move(handle);
}

bool ProcessHandle::ended_within(Duration patience) const {
  if (!handle_.valid()) return true;
  pollfd poll{handle_.get(), POLLIN, 0};
  return ::poll(&poll, 1, static_cast<int>(patience.count_ns() / 1'000'000)) == 1;
}

void ProcessHandle::signal(int number) const {
  if (handle_.valid()) (void)::syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0);
}

Result<ProcessIdentity> start_process(const LocalProcessStart& start) {
  const FileDescriptor log(
      ::open(start.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) {
    return environment_error(fmt::format("cannot write {}: {}", start.log, message_of(errno)));
  }
  std::vector<std::string> texts{start.program};
  texts.insert(texts.end(), start.arguments.begin(), start.arguments.end());
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  SpawnSetup setup;
  setup.output_to(log.get());
  pid_t pid = 0;
  if (const int failed = setup.spawn(pid, arguments); failed != 0) {
    return environment_error(fmt::format("cannot start {}: {}", start.program, message_of(failed)));
  }
  return identity_of(pid);
}

std::string program_directory() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().string();
}

std::string machine_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

ProcessIdentity lock_holder(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return {};
  const std::string place =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  std::ifstream locks("/proc/locks");
  // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string kind;
    std::string mode;
    std::string access;
    std::int64_t pid = 0;
    std::string where;
    if (!(fields >> number >> kind >> mode >> access >> pid >> where)) continue;
    if (kind == "FLOCK" && where == place) return identity_of(pid);
  }
  return {};
}

}  // namespace orrery

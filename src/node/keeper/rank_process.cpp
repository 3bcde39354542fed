#include "node/keeper/rank_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Mask for files that a job makes, independent of the agent's own.
constexpr mode_t kUmask = 022;

/// Report of a process that could not run its program, sent before it ends.
struct StartFailure {
  enum class Step : std::uint8_t { kSetUp, kGroup, kUser, kDirectory, kProgram, kFile };
  Step step = Step::kSetUp;
  int code = 0;
};

/// Returns the first directory on the way to `path`, itself included, that the user may not enter,
/// by owner, group and mode; empty: none.
std::string closed_directory(const std::string& path, const ProcessUser& user) {
  for (std::size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    std::string part = path.substr(0, end);
    struct stat found{};
    if (::stat(part.c_str(), &found) != 0) return "";
    const bool member =
        found.st_gid == user.gid ||
        std::find(user.groups.begin(), user.groups.end(), found.st_gid) != user.groups.end();
    const mode_t needed = found.st_uid == user.uid ? S_IXUSR : member ? S_IXGRP : S_IXOTH;
    if (S_ISDIR(found.st_mode) && (found.st_mode & needed) == 0) return part;
  }
  return "";
}

std::string directory_words(const ProcessStart& start, const std::string& why) {
  const std::string closed =
      start.user ? closed_directory(start.directory, *start.user) : std::string();
  const std::string hint =
      closed.empty() ? "" : fmt::format(" (user {} may not enter {})", start.user->uid, closed);
  return fmt::format("cannot run {} in {}: {}{}", start.command[0], start.directory, why, hint);
}

std::string words_of(const StartFailure& failure, const ProcessStart& start) {
  std::string why = std::generic_category().message(failure.code);
  switch (failure.step) {
    case StartFailure::Step::kSetUp:
      return fmt::format("cannot set up {}: {}", start.command[0], why);
    case StartFailure::Step::kGroup:
      return fmt::format("cannot put {} into its control group: {}", start.command[0], why);
    case StartFailure::Step::kUser:
      return fmt::format("cannot run {} as user {}: {}", start.command[0], start.user->uid, why);
    case StartFailure::Step::kDirectory:
      return directory_words(start, why);
    case StartFailure::Step::kProgram:
    case StartFailure::Step::kFile:
      break;
  }
  return fmt::format("cannot run {}: {}", start.command[0], why);
}

std::string words_of(const StartFailure& failure, const ProcessStart& start, const CopyFile& file) {
  const bool absolute = file.path.starts_with('/');
  const std::string path = absolute ? file.path : start.directory + "/" + file.path;
  const std::string user = start.user ? fmt::format(" as user {}", start.user->uid) : "";
  return fmt::format("cannot write the output to {}{}: {}", path, user,
                     std::generic_category().message(failure.code));
}

/// Writes all bytes. Returns false where it could not; errno has the cause.
bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Copies standard input to standard output until it ends.
void copy_input() {
  constexpr std::size_t kChunk = std::size_t{32} << 10;
  std::array<char, kChunk> chunk;
  std::size_t missing = 0;
  while (true) {
    const ssize_t got = ::read(0, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
    const bool told =
        missing == 0 ||
        write_whole(1, fmt::format("\n[orrery: {} bytes could not be written here]\n", missing));
    if (told) missing = 0;
    if (!told || !write_whole(1, bytes)) missing += bytes.size();
  }
}

void raise_limit(int resource) {
  rlimit limit{};
  const auto which = static_cast<__rlimit_resource>(resource);
  if (::getrlimit(which, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(which, &limit);
}

/// The new process, up to its program. Only what the program needs is left when it begins.
class NewProcess {
 public:
  NewProcess(const ProcessStart& start, int report) : start_(start), report_(report) {}

  [[noreturn]] void run(pid_t keeper, int input) {
    set_up(keeper, input);
    execute();
    fail(StartFailure::Step::kProgram);
  }

  [[noreturn]] void copy(pid_t keeper, int input, const CopyFile& file) {
    set_up(keeper, input);
    const bool anew = file.begin == CopyFile::Begin::kAnew;
    // A named pipe without a reader is an error instead of a wait.
    const int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | (anew ? O_TRUNC : O_APPEND);
    constexpr mode_t kMode = 0666;
    const int opened = ::open(file.path.c_str(), flags, kMode);
    check(opened, StartFailure::Step::kFile);
    (void)::fcntl(opened, F_SETFL, anew ? 0 : O_APPEND);
    check(::dup2(opened, 1), StartFailure::Step::kFile);
    // This closes the report, too, which signals the keeper that the file is open.
    (void)::close_range(3, ~0u, 0);
    copy_input();
    ::_exit(0);
  }

 private:
  void set_up(pid_t keeper, int input) const {
    using Step = StartFailure::Step;
    ::setsid();
    ::umask(kUmask);
    check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Step::kSetUp);
    for (const int group : start_.groups) check(::write(group, "0", 1), Step::kGroup);
    set_limits();
    become_user();
    // Changing the user resets it, so it comes after; an earlier death of the keeper is checked
    // below.
    check(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), Step::kSetUp);
    if (::getppid() != keeper) ::_exit(1);
    if (start_.terminal == ProcessStart::Terminal::kOwn) {
      check(::ioctl(input, TIOCSCTTY, 0), Step::kSetUp);
    }
    check(::dup2(input, 0), Step::kSetUp);
    const int output = start_.output < 0 ? input : start_.output;
    check(::dup2(output, 1), Step::kSetUp);
    check(::dup2(start_.errors < 0 ? output : start_.errors, 2), Step::kSetUp);
    reset_signals();
    // Descriptors that the agent or a library left open are not passed to the program.
    (void)::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    check(::chdir(start_.directory.c_str()), Step::kDirectory);
  }

  [[noreturn]] void fail(StartFailure::Step step) const {
    const StartFailure failure{step, errno};
    (void)!::write(report_, &failure, sizeof failure);
    ::_exit(127);
  }
  /// A negative result is a failure.
  void check(ssize_t result, StartFailure::Step step) const {
    if (result < 0) fail(step);
  }

  static void set_limits() {
    const rlimit none{0, 0};
    (void)::setrlimit(RLIMIT_CORE, &none);
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_MEMLOCK);
  }

  /// Gives its pipes to the user, so that it can open /dev/stdout; leaves the keeper's session
  /// keyring.
  void become_user() const {
    if (!start_.user) return;
    for (const int pipe : {start_.input, start_.output, start_.errors}) {
      if (pipe >= 0) (void)::fchown(pipe, start_.user->uid, start_.user->gid);
    }
    (void)::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
    const std::vector<gid_t> groups(start_.user->groups.begin(), start_.user->groups.end());
    check(::setgroups(groups.size(), groups.data()), StartFailure::Step::kUser);
    check(::setgid(start_.user->gid), StartFailure::Step::kUser);
    check(::setuid(start_.user->uid), StartFailure::Step::kUser);
  }

  static void reset_signals() {
    for (int number = 1; number < NSIG; ++number) (void)::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  void execute() const {
    std::vector<std::string> variables;
    variables.reserve(start_.environment.size());
    for (const auto& [name, value] : start_.environment) {
      variables.push_back(fmt::format("{}={}", name, value));
    }
    std::vector<std::string> command = start_.command;
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> list;
      list.reserve(texts.size() + 1);
      for (std::string& text : texts) list.push_back(text.data());
      list.push_back(nullptr);
      return list;
    };
    std::vector<char*> environment = pointers(variables);
    const std::vector<char*> arguments = pointers(command);
    environ = environment.data();  // The search takes PATH from here.
    ::execvp(arguments[0], arguments.data());
  }

  const ProcessStart& start_;
  int report_;
};

/// Whether a child reports within the keeper's patience, during which the keeper serves nothing:
/// other processes of the user may have stopped it, or its file system hangs.
bool is_readable(int pipe) {
  constexpr int kPatienceMs = 5000;
  pollfd waits{.fd = pipe, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&waits, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

/// Forks, lets the child `run` with its report and its input, and waits until the report is closed.
/// Returns the process; a failure of the child is in `failure`.
template <class Run>
pid_t fork_and_wait(const ProcessStart& start, StartFailure& failure, const Run& run) {
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!nothing.valid() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    failure = {StartFailure::Step::kSetUp, errno};
    return -1;
  }
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) run(writing.get(), start.input < 0 ? nothing.get() : start.input);
  if (pid < 0) {
    failure = {StartFailure::Step::kSetUp, errno};
    return -1;
  }
  writing.reset();
  ssize_t got = -1;
  if (is_readable(reading.get())) {
    do {
      got = ::read(reading.get(), &failure, sizeof failure);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return pid;  // Closed by the program's begin.
  } else {
    failure = {StartFailure::Step::kSetUp, ETIMEDOUT};
  }
  (void)::kill(pid, SIGKILL);
  (void)::waitpid(pid, nullptr, 0);
  return -1;
}

}  // namespace

Result<pid_t> start_process(const ProcessStart& start) {
  ORRERY_ASSERT(!start.command.empty(), "a job spec names a program");
  const pid_t keeper = ::getpid();
  StartFailure failure;
  const pid_t pid = fork_and_wait(
      start, failure, [&](int report, int input) { NewProcess(start, report).run(keeper, input); });
  if (pid < 0) return environment_error(words_of(failure, start));
  return pid;
}

Result<pid_t> start_copy(const ProcessStart& start, const CopyFile& file) {
  const pid_t keeper = ::getpid();
  StartFailure failure;
  const pid_t pid = fork_and_wait(start, failure, [&](int report, int input) {
    NewProcess(start, report).copy(keeper, input, file);
  });
  if (pid < 0) return environment_error(words_of(failure, start, file));
  return pid;
}

Status adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return {};
  return environment_error(
      fmt::format("cannot adopt orphans: {}", std::generic_category().message(errno)));
}

void kill_children() {
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (pid_t child = 0; children >> child;) (void)::kill(child, SIGKILL);
}

}  // namespace orrery

#include "adapter/engine_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr char kTerminate = 'T';
constexpr char kKill = 'K';

/// The program of the guard's child, from the fork to the exec.
[[noreturn]] void run_engine(char* const* arguments, int failure) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  for (int number = 1; number < NSIG; ++number) (void)::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) (void)::dup2(nothing, 0);
  (void)::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  ::execvp(arguments[0], arguments);
  const int code = errno;
  (void)!::write(failure, &code, sizeof code);
  ::_exit(127);
}

/// The guard. Between fork and exec only what may follow a fork is called: it allocates nothing.
class EngineGuard {
 public:
  EngineGuard(char* const* arguments, int link) : arguments_(arguments), link_(link) {}

  [[noreturn]] void run() {
    (void)::setpgid(0, 0);
    (void)::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (const int number : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) (void)::signal(number, SIG_IGN);
    (void)::signal(SIGCHLD, SIG_DFL);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    (void)::sigprocmask(SIG_BLOCK, &child, nullptr);
    const int ends = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    start();
    while (true) {
      std::array<pollfd, 2> watched{{{link_, POLLIN, 0}, {ends, POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) kill_all();
      if (watched[0].revents != 0) take_orders();
      if (watched[1].revents == 0) continue;
      signalfd_siginfo one;
      while (::read(ends, &one, sizeof one) > 0) {
      }
      reap();
    }
  }

 private:
  void start() {
    std::array<int, 2> failure{};
    if (::pipe2(failure.data(), O_CLOEXEC) != 0) report({.started = false, .status = errno});
    engine_ = ::fork();
    if (engine_ == 0) run_engine(arguments_, failure[1]);
    if (engine_ < 0) report({.started = false, .status = errno});
    (void)::close(failure[1]);
    int code = 0;
    if (::read(failure[0], &code, sizeof code) == sizeof code) {
      report({.started = false, .status = code});
    }
    (void)::close(failure[0]);
  }

  void take_orders() {
    char order = 0;
    const ssize_t got = ::read(link_, &order, 1);
    if (got < 0 && errno == EINTR) return;
    if (got == 1 && order == kTerminate) {
      (void)::kill(engine_, SIGTERM);
    } else if (got == 1 && order == kKill) {
      (void)::kill(engine_, SIGKILL);
    } else {
      kill_all();
      ::_exit(0);
    }
  }

  void reap() {
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == engine_) report({.started = true, .status = status});
    }
  }

  [[noreturn]] void report(const EngineEnd& end) {
    kill_all();
    (void)::send(link_, &end, sizeof end, MSG_NOSIGNAL);
    ::_exit(0);
  }

  /// Kills all descendants: the children of one that dies become the guard's own.
  void kill_all() {
    while (true) {
      kill_children();
      if (::waitpid(-1, nullptr, 0) < 0 && errno != EINTR) return;
    }
  }

  void kill_children() const {
    const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) {
      (void)::kill(0, SIGKILL);  // the whole group, the guard too
      return;
    }
    pid_t child = 0;
    for (char c = 0; ::read(list, &c, 1) == 1;) {
      if (c >= '0' && c <= '9') {
        child = child * 10 + (c - '0');
      } else if (child > 0) {
        (void)::kill(std::exchange(child, 0), SIGKILL);
      }
    }
    if (child > 0) (void)::kill(child, SIGKILL);
    (void)::close(list);
  }

  char* const* arguments_;
  int link_;
  pid_t engine_ = 0;
};

tl::unexpected<Error> cannot_start(const std::string& program) {
  return environment_error(
      fmt::format("cannot start {}: {}", program, std::generic_category().message(errno)));
}

}  // namespace

std::string EngineEnd::text() const {
  if (!started) return "cannot be run: " + std::generic_category().message(status);
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(RealLoop& loop,
                                                            const std::vector<std::string>& command,
                                                            Ended ended) {
  ORRERY_ASSERT(!command.empty(), "an engine has a program");
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return cannot_start(command[0]);
  }
  auto process = std::make_unique<EngineProcess>(loop, FileDescriptor(ends[0]), std::move(ended));
  const FileDescriptor theirs(ends[1]);
  process->guard_ = ::fork();
  if (process->guard_ == 0) {
    // The guard keeps no other descriptor open, its starter's end of the pair above all.
    constexpr int kLink = 3;
    if (::dup2(theirs.get(), kLink) != kLink) ::_exit(127);
    (void)::close_range(kLink + 1, ~0u, 0);
    EngineGuard(arguments.data(), kLink).run();
  }
  if (process->guard_ < 0) return cannot_start(command[0]);
  const Result<WatchId> watch = loop.watch(process->link_.get(), EPOLLIN, *process);
  if (!watch) return tl::unexpected(watch.error());
  process->watch_ = *watch;
  return process;
}

EngineProcess::~EngineProcess() {
  if (watch_ != WatchId::kNone) loop_.unwatch(watch_);
  link_.reset();
  if (guard_ > 0) (void)::waitpid(guard_, nullptr, 0);
}

void EngineProcess::order(char order) {
  (void)::send(link_.get(), &order, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void EngineProcess::terminate() { order(kTerminate); }

void EngineProcess::kill() { order(kKill); }

void EngineProcess::on_ready(std::uint32_t) {
  EngineEnd end;
  const ssize_t got = ::recv(link_.get(), &end, sizeof end, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // A guard that was killed has taken the engine with it.
  if (got != sizeof end) end = {.started = true, .status = SIGKILL};
  loop_.unwatch(std::exchange(watch_, WatchId::kNone));
  const Ended ended = std::exchange(ended_, nullptr);
  ended(end);
}

}  // namespace orrery

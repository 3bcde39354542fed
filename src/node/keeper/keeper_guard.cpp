#include "node/keeper/keeper_guard.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "node/keeper/rank_process.hpp"

namespace orrery {
namespace {

int status_of(int waited) {
  return WIFEXITED(waited) ? WEXITSTATUS(waited) : 128 + WTERMSIG(waited);
}

/// Waits for the keeper, then for all processes it left behind.
int guard(pid_t keeper, const sigset_t& wanted) {
  int status = 0;
  bool gone = false;
  while (true) {
    siginfo_t signal{};
    if (::sigwaitinfo(&wanted, &signal) == SIGTERM && !gone) (void)::kill(keeper, SIGTERM);
    int waited = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, &waited, WNOHANG)) > 0) {
      if (ended != keeper) continue;
      gone = true;
      status = status_of(waited);
    }
    if (ended < 0 && errno == ECHILD) return status;
    if (gone) kill_children();
  }
}

}  // namespace

Result<FileDescriptor> lock_keeper_directory(const KeeperFiles& files) {
  const std::string path = files.lock();
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const std::string why = lock.valid() && errno == EWOULDBLOCK
                                ? "another keeper holds it"
                                : std::generic_category().message(errno);
    return environment_error(fmt::format("cannot lock {}: {}", path, why));
  }
  return lock;
}

int run_guarded(const std::function<int()>& keeper) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTERM);
  (void)::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  if (Status adopting = adopt_orphans(); !adopting) return 1;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return 1;
  if (pid == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (::getppid() != parent) ::_exit(1);
    ::_exit(keeper());
  }
  // Only the keeper reports that it is ready.
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid()) (void)::dup2(null.get(), 1);
  return guard(pid, wanted);
}

}  // namespace orrery

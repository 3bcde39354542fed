#include "node/agent/agent_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "node/launch/run_directory.hpp"

namespace orrery {
namespace {

/// How long an agent waits for the lock, and how often it looks.
constexpr Duration kLockPatience = Duration::seconds(60);
constexpr Duration kLockLook = Duration::milliseconds(500);

tl::unexpected<Error> lock_error(std::string_view what) {
  return environment_error(
      fmt::format("cannot {}: {}", what, std::generic_category().message(errno)));
}

}  // namespace

Status check_agent_directory(Storage& storage, const std::string& directory) {
  const AttemptId longest{JobId(~1u), ~0u};
  const std::size_t path_max = sizeof(sockaddr_un::sun_path) - 1;
  const std::string place = directory + "/attempts";
  const AttemptDirectories attempts(storage, place, place);
  const std::size_t path = attempts.files(longest).directory.size() + sizeof "/socket" - 1;
  if (path <= path_max) return {};
  return input_error({}, fmt::format("{}: at most {} bytes, so that sockets may be in it",
                                     directory, directory.size() - (path - path_max)));
}

Result<AgentDirectory> AgentDirectory::open(Storage& storage, std::string path,
                                            const LockWait& wait) {
  if (Status fits = check_agent_directory(storage, path); !fits) return forward_error(fits);
  AgentDirectory directory(storage, std::move(path));
  if (auto made = storage.make_directories(directory.path_); !made) return forward_error(made);
  if (::geteuid() == 0) make_searchable(directory.path_);
  if (Status locked = directory.lock(wait); !locked) return forward_error(locked);
  if (Status counted = directory.count(); !counted) return forward_error(counted);
  Result<std::string> run = own_run_directory(directory.path_);
  if (!run) return forward_error(run);
  directory.run_ = *std::move(run);
  return directory;
}

Status AgentDirectory::lock(const LockWait& wait) {
  const std::string path = path_ + "/lock";
  lock_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid()) return lock_error("open " + path);
  Duration waited;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return lock_error("lock " + path);
    const bool may_wait = wait.pause && waited < kLockPatience;
    if (may_wait && waited == Duration()) wait.begin();
    if (!may_wait || !wait.pause(kLockLook)) {
      return environment_error(fmt::format("{}: another agent holds it", path));
    }
    waited += kLockLook;
  }
  return {};
}

Status AgentDirectory::count() {
  const std::string path = path_ + "/incarnation";
  const std::string text = storage_.read_file(path, 64).value_or("");
  (void)std::from_chars(text.data(), text.data() + text.size(), incarnation_);
  ++incarnation_;
  auto written = storage_.write_file(path, fmt::format("{}\n", incarnation_));
  if (!written) return forward_error(written);
  return {};
}

Status AgentDirectory::join(std::uint64_t cluster, NodeId node, std::size_t living) {
  const std::string path = path_ + "/cluster";
  const std::string own = fmt::format("{:016x} node {}\n", cluster, node.value());
  const std::string before = storage_.read_file(path, 256).value_or(own);
  if (before != own && living > 0) {
    return environment_error(
        fmt::format("{}: what runs here belongs to cluster {}, not to cluster {}", path_,
                    before.substr(0, before.find('\n')), own.substr(0, own.find('\n'))));
  }
  auto written = storage_.write_file(path, own);
  if (!written) return forward_error(written);
  return {};
}

}  // namespace orrery

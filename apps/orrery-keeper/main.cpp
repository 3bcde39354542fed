// orrery-keeper DIRECTORY [RUN]: keeps the ranks of one attempt on one node
// (node/keeper/keeper_process.hpp).
//
// Started by the agent, which wrote RUN/launch (node/keeper/keeper_launch.hpp). Says "ready" on
// standard output once an agent can connect; what prevents that goes to standard error. It ends
// when the agent releases it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"
#include "node/keeper/keeper_guard.hpp"
#include "node/keeper/keeper_process.hpp"

namespace orrery {
namespace {

int complain(const Error& error) {
  fmt::print(stderr, "orrery-keeper: {}\n", terminal_text(error.text(), Newlines::kKept));
  return 1;
}

int keep(const KeeperFiles& files) {
  // An attempt ends with the boot of its node, and what is written of it may be lost with it.
  Result<std::unique_ptr<RealEnv>> real = RealEnv::create({}, Durability::kUntilBoot);
  if (!real) return complain(real.error());
  Result<std::unique_ptr<KeeperProcess>> keeper = KeeperProcess::open(**real, files);
  if (!keeper) return complain(keeper.error());
  (void)!::write(1, "ready\n", 6);
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null.valid()) (void)::dup2(null.get(), 1);
  (*keeper)->run();
  return 0;
}

int run(const KeeperFiles& files) {
  const Result<FileDescriptor> lock = lock_keeper_directory(files);
  if (!lock) return complain(lock.error());
  const int status = run_guarded([&] { return keep(files); });
  if (status > 128) {
    RealStorage storage;
    (void)make_keeper_group(storage, files);
  }
  // No process is left. A launch file that is still there shows that this line was not reached.
  (void)::unlink(files.launch().c_str());
  return status;
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "--version") == 0) {
    fmt::print("orrery-keeper {}\n", ORRERY_VERSION);
    return 0;
  }
  const bool help = count == 2 && (std::strcmp(arguments[1], "--help") == 0 ||
                                   std::strcmp(arguments[1], "-h") == 0);
  if (help || count < 2 || count > 3 || arguments[1][0] == '-') {
    fmt::print(help ? stdout : stderr,
               "usage: orrery-keeper DIRECTORY [RUN]\n\n"
               "Holds the ranks of one attempt of a job on this node. Agents start it, with the\n"
               "attempt's launch file in RUN (default: DIRECTORY); it is not meant to be started\n"
               "by hand.\n");
    return help ? 0 : 2;
  }
  return orrery::run({arguments[1], arguments[count - 1]});
}

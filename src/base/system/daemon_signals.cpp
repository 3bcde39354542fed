#include "base/system/daemon_signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace orrery {
namespace {

sigset_t set_of(DaemonSignals which) {
  sigset_t signals;
  sigemptyset(&signals);
  if (which == DaemonSignals::kReload) {
    sigaddset(&signals, SIGHUP);
  } else {
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
  }
  return signals;
}

}  // namespace

void block_signals(DaemonSignals which) {
  const sigset_t signals = set_of(which);
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)std::signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<DescriptorWatch>> watch_signals(RealLoop& loop, DaemonSignals which,
                                                       Callback told) {
  const sigset_t signals = set_of(which);
  FileDescriptor descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor.valid()) {
    return environment_error("cannot watch signals: " + std::generic_category().message(errno));
  }
  return DescriptorWatch::make(loop, std::move(descriptor),
                               [told = std::move(told)](std::string_view) { told(); });
}

}  // namespace orrery

#include "node/ending_signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace orrery {
namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void block_ending_signals() {
  const sigset_t signals = ending_signals();
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  (void)std::signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<DescriptorWatch>> watch_ending_signals(RealLoop& loop, Callback ended) {
  const sigset_t signals = ending_signals();
  FileDescriptor descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor.valid()) {
    return environment_error("cannot watch signals: " + std::generic_category().message(errno));
  }
  return DescriptorWatch::make(loop, std::move(descriptor),
                               [ended = std::move(ended)](std::string_view) { ended(); });
}

}  // namespace orrery

#include "base/launch/progress_pipe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace orrery {

ProgressPipe::ProgressPipe(const std::string& path) {
  if (path.empty()) return;
  pipe_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

void ProgressPipe::write(const std::string& json) {
  if (!pipe_.valid()) return;
  constexpr int kWaitMs = 5'000;
  pollfd writable{pipe_.get(), POLLOUT, 0};
  if (::poll(&writable, 1, kWaitMs) != 1) return;
  const std::string line = json + "\n";
  // A closed pipe is ignored: the program works on without its keeper.
  if (::write(pipe_.get(), line.data(), line.size()) < 0) return;
}

}  // namespace orrery

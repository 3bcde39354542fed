#include "apps/orrery/local_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace orrery {
namespace {

// A handler of signals knows no objects.
volatile std::sig_atomic_t ending_signal = 0;
volatile std::sig_atomic_t window_changed = 0;
volatile std::sig_atomic_t signal_pipe = -1;

void note_signal(int number) {
  const int before = errno;
  if (number == SIGWINCH) {
    window_changed = 1;
  } else {
    ending_signal = number;
  }
  (void)!::write(signal_pipe, "", 1);
  errno = before;
}

}  // namespace

NotedSignals::NotedSignals() {
  std::array<int, 2> ends{-1, -1};
  (void)!::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC);
  reading_ = FileDescriptor(ends[0]);
  ending_signal = 0;
  window_changed = 0;
  signal_pipe = ends[1];
  struct sigaction action{};
  action.sa_handler = note_signal;  // Without SA_RESTART: what blocks returns.
  sigemptyset(&action.sa_mask);
  for (std::size_t at = 0; at < kNoted.size(); ++at) {
    (void)::sigaction(kNoted[at], &action, &before_[at]);
  }
}

NotedSignals::~NotedSignals() {
  for (std::size_t at = 0; at < kNoted.size(); ++at) {
    (void)::sigaction(kNoted[at], &before_[at], nullptr);
  }
  (void)::close(std::exchange(signal_pipe, -1));
}

void NotedSignals::clear() {
  std::array<char, 64> bytes;
  while (::read(reading_.get(), bytes.data(), bytes.size()) > 0) {
  }
}

int NotedSignals::ending() { return ending_signal; }

bool NotedSignals::resized() {
  if (window_changed == 0) return false;
  window_changed = 0;
  return true;
}

Result<RawTerminal> RawTerminal::open() {
  RawTerminal terminal;
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) != 0 || ::isatty(STDOUT_FILENO) == 0) {
    return input_error({}, "--tty: standard input and output are not a terminal");
  }
  terminal.before_ = now;
  ::cfmakeraw(&now);
  (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
  return terminal;
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : before_(std::exchange(other.before_, std::nullopt)) {}

RawTerminal::~RawTerminal() {
  if (before_) (void)::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
}

v1::TerminalSize RawTerminal::size() {
  v1::TerminalSize size;
  size.set_columns(80);
  size.set_rows(24);
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return size;
  size.set_columns(window.ws_col);
  size.set_rows(window.ws_row);
  return size;
}

}  // namespace orrery

#include "apps/orrery/terminal_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // another screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearRest = "\x1b[J";
constexpr char kInterrupt = '\x03';

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

Size size_now() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0) return {};
  return {window.ws_row, window.ws_col};
}

}  // namespace

std::string clipped(std::string_view line, std::size_t columns) {
  std::string out;
  out.reserve(line.size());
  std::size_t shown = 0;
  std::size_t last = 0;  // where the character of the last column is
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      const std::size_t end = std::min(line.find('m', i), line.size() - 1);
      out.append(line.substr(i, end + 1 - i));
      i = end;
      continue;
    }
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xC0) != 0x80;
    if (begins) ++shown;
    if (begins && shown == columns) last = out.size();
    if (shown <= columns) out += line[i];
  }
  if (shown <= columns || columns == 0) return out;
  // The colours behind it stay; a mark stands for what is left out.
  std::size_t end = last + 1;
  while (end < out.size() && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) ++end;
  return out.replace(last, end - last, ">");
}

Result<TerminalScreen> TerminalScreen::open() {
  TerminalScreen screen;
  if (::tcgetattr(STDIN_FILENO, &screen.before_) != 0 || ::isatty(STDOUT_FILENO) == 0) {
    return environment_error("not a terminal");
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&signals, each);
  (void)::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  screen.signals_ = FileDescriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  termios raw = screen.before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  screen.open_ = true;
  put(kEnter);
  return screen;
}

TerminalScreen::TerminalScreen(TerminalScreen&& other) noexcept
    : before_(other.before_),
      signals_(std::move(other.signals_)),
      open_(std::exchange(other.open_, false)) {}

TerminalScreen::~TerminalScreen() {
  if (!open_) return;
  put(kLeave);
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void TerminalScreen::draw(const std::string& text) const {
  const Size size = size_now();
  std::string frame(kHome);
  std::size_t from = 0;
  for (std::size_t row = 0; row < size.rows && from < text.size(); ++row) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (row > 0) frame += "\r\n";
    frame += clipped(std::string_view(text).substr(from, end - from), size.columns);
    frame += kClearLine;
    from = end + 1;
  }
  frame += kClearRest;
  put(frame);
}

bool TerminalScreen::wait(Duration time) const {
  pollfd polls[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  if (::poll(polls, 2, static_cast<int>(time.count_ns() / 1'000'000)) <= 0) return true;
  if (polls[1].revents != 0) {
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) != sizeof signal) return true;
    return signal.ssi_signo == SIGWINCH;
  }
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) != 1) return false;
  return key != 'q' && key != 'Q' && key != kInterrupt;
}

}  // namespace orrery

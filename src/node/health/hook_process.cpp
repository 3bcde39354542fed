#include "node/health/hook_process.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/text/utf8.hpp"
#include "node/launch/spawn_settings.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTailMax = 4096;
constexpr std::size_t kEvidenceMax = 400;

std::string words_of(int code) { return std::generic_category().message(code); }

}  // namespace

HookProcess::HookProcess(RealEnv& real, const HookStart& start, Ended ended)
    : real_(real), ended_(std::move(ended)) {
  if (std::string failure = this->start(start); !failure.empty()) {
    end_later(Duration(), std::move(failure));
    return;
  }
  timer_ = real_.env().timers.call_after(start.timeout,
                                         [this, timeout = start.timeout] { kill_late(timeout); });
}

HookProcess::~HookProcess() {
  if (timer_) real_.env().timers.cancel(*timer_);
  unwatch(output_watch_);
  unwatch(process_watch_);
  kill_group();
  if (child_ != 0) (void)::waitpid(child_, nullptr, WNOHANG);
}

std::string HookProcess::start(const HookStart& start) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "cannot make a pipe: " + words_of(errno);
  output_ = FileDescriptor(ends[0]);
  const FileDescriptor writing(ends[1]);
  (void)::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  const SpawnSettings settings(writing.get());
  if (const int failed = settings.run(child_, start.command, start.variables); failed != 0) {
    child_ = 0;
    return fmt::format("cannot run {}: {}", start.command[0], words_of(failed));
  }
  process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
  if (!process_.valid()) return "cannot watch a program: " + words_of(errno);
  const Result<WatchId> process = real_.loop().watch(process_.get(), EPOLLIN, *this);
  if (!process) return process.error().message;
  process_watch_ = *process;
  const Result<WatchId> output = real_.loop().watch(output_.get(), EPOLLIN, *this);
  if (!output) return output.error().message;
  output_watch_ = *output;
  return "";
}

void HookProcess::unwatch(WatchId& watch) {
  if (watch != WatchId::kNone) real_.loop().unwatch(std::exchange(watch, WatchId::kNone));
}

/// Kills the process; its end follows at once, unless the kernel delays it.
void HookProcess::kill_late(const Duration& timeout) {
  constexpr Duration kPatience = Duration::seconds(1);
  late_ = fmt::format("not done after {}", timeout.text());
  kill_group();
  end_later(kPatience, late_);
}

void HookProcess::end_later(Duration delay, std::string failure) {
  timer_ = real_.env().timers.call_after(delay, [this, failure = std::move(failure)] {
    timer_.reset();
    end(failure);
  });
}

/// When the program ends all its output is in the pipe; processes that it left behind are killed.
void HookProcess::on_ready(std::uint32_t) {
  read_output();
  siginfo_t info{};
  const auto child = static_cast<id_t>(child_);
  if (::waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  kill_group();  // while its number cannot be reused
  int status = 0;
  (void)::waitpid(std::exchange(child_, 0), &status, 0);
  if (!late_.empty()) return end(late_);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return end("");
  end(WIFEXITED(status) ? fmt::format("exit status {}", WEXITSTATUS(status))
                        : fmt::format("signal {}", WTERMSIG(status)));
}

void HookProcess::end(const std::string& failure) {
  unwatch(process_watch_);
  if (timer_) real_.env().timers.cancel(*std::exchange(timer_, std::nullopt));
  read_output();
  unwatch(output_watch_);
  while (tail_.ends_with('\n')) tail_.pop_back();
  std::string whole = failure;
  if (!failure.empty() && !tail_.empty()) {
    const std::size_t cut = tail_.size() - std::min(tail_.size(), kEvidenceMax);
    whole += ": " + printable(std::string_view(tail_).substr(cut), kEvidenceMax);
  }
  const Ended ended = std::move(ended_);
  ended(whole);
}

void HookProcess::read_output() {
  std::array<char, kTailMax> bytes;
  ssize_t got = -1;
  while (output_.valid() && (got = ::read(output_.get(), bytes.data(), bytes.size())) > 0) {
    tail_.append(bytes.data(), static_cast<std::size_t>(got));
    if (tail_.size() > kTailMax) tail_.erase(0, tail_.size() - kTailMax);
  }
  if (got == 0) unwatch(output_watch_);  // closed: it would be ready for ever
}

/// Kills all of its session.
void HookProcess::kill_group() {
  if (child_ != 0) (void)::kill(-child_, SIGKILL);
}

}  // namespace orrery

#include "executor/slurm/slurm_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace orrery {
namespace {

std::string reason(std::string_view what) {
  return fmt::format("{}: {}", what, std::generic_category().message(errno));
}

/// Returns a file in memory to be read from its beginning; invalid: errno says why. A program never
/// has to be waited for to take its input from it.
FileDescriptor file_of(std::string_view bytes) {
  FileDescriptor file(::memfd_create("orrery-slurm-input", MFD_CLOEXEC));
  while (file.valid() && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0) return {};
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file.valid()) (void)::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// The ends of a pipe; its reader does not block.
struct Pipe {
  FileDescriptor reader;
  FileDescriptor writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

/// Input, output and errors of a program.
using Streams = std::array<int, 3>;

/// Starts words[0] in a session of its own with no signal blocked; 0 or errno.
int spawn(pid_t& child, std::vector<std::string> words, std::vector<std::string> variables,
          const Streams& streams) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int to = 0; to < 3; ++to) {
    ::posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(to)], to);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t usual = none;
  sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&child, words[0].c_str(), &actions, &attributes,
                                    pointers(words).data(), pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

SlurmCommand::SlurmCommand(RealEnv& real, const SlurmCommandStart& start, Ended ended)
    : real_(real), ended_(std::move(ended)), output_max_(start.output_max) {
  end_.failure = this->start(start);
  const bool failed = !end_.failure.empty();
  timer_ = real_.env().timers.call_after(failed ? Duration() : start.timeout,
                                         [this, failed, timeout = start.timeout] {
                                           timer_.reset();
                                           if (failed) return finish();
                                           stop("not done after " + timeout.text());
                                         });
}

SlurmCommand::~SlurmCommand() {
  if (timer_) real_.env().timers.cancel(*timer_);
  for (Source* source : {&output_, &errors_, &process_}) unwatch(*source);
  if (child_ == 0) return;
  (void)::kill(-child_, SIGKILL);
  (void)::waitpid(child_, nullptr, WNOHANG);
}

/// Returns why it failed; empty: it runs.
std::string SlurmCommand::start(const SlurmCommandStart& start) {
  const FileDescriptor input = file_of(start.input);
  if (!input.valid()) return reason("cannot keep a program's input");
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  if (!output.writer.valid() || !errors.writer.valid()) return reason("cannot make a pipe");
  errno = spawn(child_, start.words, start.variables,
                {input.get(), output.writer.get(), errors.writer.get()});
  if (errno != 0) {
    child_ = 0;
    return reason("cannot run " + start.words[0]);
  }
  end_.started = true;
  output_.fd = std::move(output.reader);
  errors_.fd = std::move(errors.reader);
  process_.fd = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
  if (!process_.fd.valid()) return reason("cannot watch a program");
  for (Source* source : {&output_, &errors_, &process_}) {
    if (std::string failure = watch(*source); !failure.empty()) return failure;
  }
  return "";
}

std::string SlurmCommand::watch(Source& source) {
  const Result<WatchId> watch = real_.loop().watch(source.fd.get(), EPOLLIN, *this);
  if (!watch) return watch.error().message;
  source.watch = *watch;
  return "";
}

void SlurmCommand::unwatch(Source& source) {
  if (source.watch == WatchId::kNone) return;
  real_.loop().unwatch(std::exchange(source.watch, WatchId::kNone));
}

/// Looks for the end before it reads, so that nothing is missed that was printed before it.
void SlurmCommand::on_ready(std::uint32_t) {
  siginfo_t info{};
  const auto child = static_cast<id_t>(child_);
  const bool ended =
      ::waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  if (ended) (void)::kill(-child_, SIGKILL);  // what it left behind, while its number is taken
  read(output_);
  read(errors_);
  if (errors_.bytes.size() > kSlurmErrorsMax) errors_.bytes.resize(kSlurmErrorsMax);
  if (output_.bytes.size() > output_max_) {
    stop(fmt::format("printed more than {} bytes", output_max_));
  }
  if (!ended) return;
  (void)::waitpid(std::exchange(child_, 0), nullptr, 0);
  end_.status = info.si_status;
  if (end_.failure.empty() && info.si_code != CLD_EXITED) {
    end_.failure = fmt::format("signal {}", info.si_status);
  }
  finish();
}

void SlurmCommand::read(Source& source) {
  constexpr int kReadsMax = 32;  // the loop has others to serve
  std::array<char, 64 << 10> bytes;
  for (int reads = 0; reads < kReadsMax && source.watch != WatchId::kNone; ++reads) {
    const ssize_t got = ::read(source.fd.get(), bytes.data(), bytes.size());
    if (got < 0) return;
    if (got == 0) return unwatch(source);  // closed: it would be ready for ever
    source.bytes.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

/// Kills it; its end follows at once, unless the kernel delays it.
void SlurmCommand::stop(std::string failure) {
  constexpr Duration kPatience = Duration::seconds(1);
  output_.bytes.clear();
  if (!end_.failure.empty()) return;
  end_.failure = std::move(failure);
  (void)::kill(-child_, SIGKILL);
  if (timer_) real_.env().timers.cancel(*timer_);
  timer_ = real_.env().timers.call_after(kPatience, [this] {
    timer_.reset();
    finish();
  });
}

void SlurmCommand::finish() {
  if (timer_) real_.env().timers.cancel(*std::exchange(timer_, std::nullopt));
  for (Source* source : {&output_, &errors_, &process_}) unwatch(*source);
  end_.output = std::move(output_.bytes);
  end_.errors = std::move(errors_.bytes);
  const Ended ended = std::move(ended_);
  ended(std::move(end_));
}

}  // namespace orrery

#include "node/exec/exec_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "node/keeper/rank_process.hpp"
#include "node/machine/kernel_file.hpp"

namespace orrery {
namespace {

constexpr Duration kHangUpPatience = Duration::seconds(10);
/// What a terminal still holds when its command ends arrives within moments, unless a process that
/// the command left behind has it open.
constexpr Duration kTerminalPatience = Duration::milliseconds(500);
constexpr char kEndOfInput = 4;  ///< as a user types it: ^D

tl::unexpected<Error> exec_error(std::string_view what) {
  return environment_error(
      fmt::format("cannot {}: {}", what, std::generic_category().message(errno)));
}

/// Returns the session of a process; none: there is no such process.
std::optional<pid_t> session_of(const std::string& process) {
  const std::string text = kernel_file("/proc/" + process + "/stat");
  // The process name before it may hold any character.
  std::size_t at = text.rfind(')');
  if (at == text.npos) return std::nullopt;
  constexpr int kFieldsBefore = 4;  // state, parent, group, each behind a space
  for (int field = 0; field < kFieldsBefore && at != text.npos; ++field)
    at = text.find(' ', at + 1);
  if (at == text.npos) return std::nullopt;
  pid_t session = 0;
  const auto read = std::from_chars(text.data() + at + 1, text.data() + text.size(), session);
  if (read.ec != std::errc()) return std::nullopt;
  return session;
}

winsize window_of(TerminalSize size) {
  winsize window{};
  window.ws_col = size.columns;
  window.ws_row = size.rows;
  return window;
}

Variables exec_environment(const RankStart& rank, const ExecOpen& open) {
  Variables environment = rank.environment;
  if (!open.terminal || open.terminal_type.empty()) return environment;
  std::erase_if(environment, [](const auto& each) { return each.first == "TERM"; });
  environment.emplace_back("TERM", open.terminal_type);
  return environment;
}

std::vector<std::string> exec_command(const RankStart& rank, const ExecOpen& open) {
  if (!open.command.empty()) return open.command;
  const auto shell = std::ranges::find(rank.environment, "SHELL", &Variables::value_type::first);
  return {shell == rank.environment.end() ? "/bin/sh" : shell->second};
}

}  // namespace

/// The command's input.
class ExecProcess::InputPipe final : public ReadyHandler {
 public:
  enum class End : std::uint8_t { kCloses, kIsTyped };
  InputPipe(ExecProcess& process, FileDescriptor pipe, End end)
      : process_(process), pipe_(std::move(pipe)), end_(end) {}
  InputPipe(const InputPipe&) = delete;
  InputPipe& operator=(const InputPipe&) = delete;
  ~InputPipe() override { close(); }

  void add(std::string_view bytes) {
    if (!pipe_.valid()) return process_.note_input_taken(bytes.size());
    waiting_ += bytes;
    counted_ += bytes.size();
    flush();
  }
  void end() {
    if (end_ == End::kIsTyped) {
      waiting_ += kEndOfInput;
    } else {
      ends_ = true;
    }
    flush();
  }
  void on_ready(std::uint32_t) override { flush(); }

 private:
  void flush() {
    while (!waiting_.empty() && pipe_.valid()) {
      const ssize_t written = ::write(pipe_.get(), waiting_.data(), waiting_.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EAGAIN) return wait();
      if (written < 0) {
        close();  // The command reads no more.
      } else {
        waiting_.erase(0, static_cast<std::size_t>(written));
      }
    }
    if (!pipe_.valid()) waiting_.clear();
    if (watch_ != WatchId::kNone) process_.loop_.unwatch(std::exchange(watch_, WatchId::kNone));
    if (ends_) close();
    if (const std::uint64_t taken = std::exchange(counted_, 0); taken > 0) {
      process_.note_input_taken(taken);
    }
  }
  void wait() {
    if (watch_ != WatchId::kNone) return;
    const Result<WatchId> watch = process_.loop_.watch(pipe_.get(), EPOLLOUT, *this);
    if (watch) watch_ = *watch;
  }
  void close() {
    if (watch_ != WatchId::kNone) process_.loop_.unwatch(std::exchange(watch_, WatchId::kNone));
    pipe_.reset();
  }

  ExecProcess& process_;
  FileDescriptor pipe_;
  End end_;
  std::string waiting_;
  std::uint64_t counted_ = 0;  ///< bytes of the client among those that wait
  WatchId watch_ = WatchId::kNone;
  bool ends_ = false;
};

/// The command's output.
class ExecProcess::OutputPipe final : public ReadyHandler {
 public:
  enum class State : std::uint8_t { kOpen, kEmpty, kOver };
  OutputPipe(ExecProcess& process, FileDescriptor pipe, std::string ExecOutput::* field)
      : process_(process), pipe_(std::move(pipe)), field_(field) {}
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() override { set_watch(Watched::kNo); }

  enum class Watched : std::uint8_t { kNo, kYes };
  void set_watch(Watched wanted) {
    const bool watches = watch_ != WatchId::kNone;
    const bool wants = wanted == Watched::kYes && !over_;
    if (watches && !wants) process_.loop_.unwatch(std::exchange(watch_, WatchId::kNone));
    if (watches || !wants) return;
    const Result<WatchId> watch = process_.loop_.watch(pipe_.get(), EPOLLIN, *this);
    if (watch) watch_ = *watch;
  }
  [[nodiscard]] bool over() const { return over_; }

  /// Reads once; kEmpty: no bytes are available now.
  State read() {
    constexpr std::size_t kChunk = std::size_t{32} << 10;
    std::array<char, kChunk> chunk;
    const ssize_t got = ::read(pipe_.get(), chunk.data(), chunk.size());
    if (got > 0) {
      ExecOutput output{.id = process_.id_};
      (output.*field_).assign(chunk.data(), static_cast<std::size_t>(got));
      process_.note_output(output);
      return State::kOpen;
    }
    if (got < 0 && errno == EINTR) return State::kOpen;
    if (got < 0 && errno == EAGAIN) return State::kEmpty;
    // EIO of a terminal: no process has its other side open.
    set_watch(Watched::kNo);
    over_ = true;
    return State::kOver;
  }
  void on_ready(std::uint32_t) override {
    (void)read();
    process_.pace();
    process_.end_if_read();
  }

 private:
  ExecProcess& process_;
  FileDescriptor pipe_;
  std::string ExecOutput::* field_;
  WatchId watch_ = WatchId::kNone;
  bool over_ = false;
};

Result<std::unique_ptr<ExecProcess>> ExecProcess::start(const ExecOpen& open, const Setup& setup) {
  auto process = std::make_unique<ExecProcess>(open, setup);
  Status ready = open.terminal ? process->open_terminal(*open.terminal) : process->open_pipes();
  if (ready) ready = process->run(open, setup);
  if (!ready) return forward_error(ready);
  return process;
}

ExecProcess::ExecProcess(const ExecOpen& open, const Setup& setup)
    : loop_(setup.loop), id_(open.id), told_(setup.output), ended_(setup.ended) {}

ExecProcess::~ExecProcess() {
  if (timer_) loop_.cancel(*timer_);
}

Status ExecProcess::open_pipes() {
  std::array<std::array<int, 2>, 3> pipes{};
  std::array<FileDescriptor, 3> ours;
  for (std::size_t at = 0; at < pipes.size(); ++at) {
    if (::pipe2(pipes[at].data(), O_CLOEXEC) != 0) return exec_error("make a pipe");
    const bool is_input = at == 0;
    own_[at] = FileDescriptor(pipes[at][is_input ? 0 : 1]);
    ours[at] = FileDescriptor(pipes[at][is_input ? 1 : 0]);
    (void)::fcntl(ours[at].get(), F_SETFL, O_NONBLOCK);
  }
  input_ = std::make_unique<InputPipe>(*this, std::move(ours[0]), InputPipe::End::kCloses);
  outputs_[0] = std::make_unique<OutputPipe>(*this, std::move(ours[1]), &ExecOutput::output);
  outputs_[1] = std::make_unique<OutputPipe>(*this, std::move(ours[2]), &ExecOutput::errors);
  return {};
}

Status ExecProcess::open_terminal(TerminalSize size) {
  terminal_ = FileDescriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal_.valid() || ::grantpt(terminal_.get()) != 0 || ::unlockpt(terminal_.get()) != 0) {
    return exec_error("make a terminal");
  }
  own_[0] = FileDescriptor(::ioctl(terminal_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!own_[0].valid()) return exec_error("open a terminal");
  const winsize window = window_of(size);
  (void)::ioctl(terminal_.get(), TIOCSWINSZ, &window);
  (void)::fcntl(terminal_.get(), F_SETFL, O_RDWR | O_NONBLOCK);
  // Duplicates the descriptor, so that each direction is waited for separately.
  FileDescriptor input(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3));
  FileDescriptor output(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3));
  if (!input.valid() || !output.valid()) return exec_error("open a terminal");
  input_ = std::make_unique<InputPipe>(*this, std::move(input), InputPipe::End::kIsTyped);
  outputs_[0] = std::make_unique<OutputPipe>(*this, std::move(output), &ExecOutput::output);
  return {};
}

Status ExecProcess::run(const ExecOpen& open, const Setup& setup) {
  const bool terminal = terminal_.valid();
  const Variables environment = exec_environment(setup.rank, open);
  const ProcessStart process{
      .command = exec_command(setup.rank, open),
      .environment = environment,
      .directory = setup.launch.directory,
      .user = setup.launch.user,
      .output = own_[terminal ? 0 : 1].get(),
      .input = own_[0].get(),
      .errors = own_[terminal ? 0 : 2].get(),
      .groups = setup.groups,
      .terminal = terminal ? ProcessStart::Terminal::kOwn : ProcessStart::Terminal::kNone};
  const Result<pid_t> pid = start_process(process);
  if (!pid) return tl::unexpected(pid.error());
  pid_ = *pid;
  for (FileDescriptor& each : own_) each.reset();
  pace();
  return {};
}

// --- What goes in and out -----------------------------------------------------------------------

void ExecProcess::take(const ExecInput& input) {
  if (input.close) return hang_up();
  if (hung_up_) return;
  on_the_way_ -= std::min(on_the_way_, input.taken);
  if (input.terminal && terminal_.valid()) {
    const winsize window = window_of(*input.terminal);
    (void)::ioctl(terminal_.get(), TIOCSWINSZ, &window);
  }
  if (!input.bytes.empty()) input_->add(input.bytes);
  if (input.end) input_->end();
  pace();
  end_if_read();
}

void ExecProcess::note_input_taken(std::uint64_t bytes) {
  if (!hung_up_) told_({.id = id_, .output = {}, .errors = {}, .taken = bytes});
}

void ExecProcess::note_output(const ExecOutput& output) {
  on_the_way_ += output.output.size() + output.errors.size();
  told_(output);
}

/// Stops reading the command's output while its client is slow.
void ExecProcess::pace() {
  const bool reads = !hung_up_ && on_the_way_ < kExecBytesMax;
  for (const std::unique_ptr<OutputPipe>& each : outputs_) {
    if (each == nullptr) continue;
    each->set_watch(reads ? OutputPipe::Watched::kYes : OutputPipe::Watched::kNo);
  }
}

// --- The end ------------------------------------------------------------------------------------

void ExecProcess::note_end(int status) {
  status_ = status;
  if (hung_up_) {
    kill_session(SIGKILL);
    return end();
  }
  end_if_read();
}

/// Ends once the command has ended and all its output is read.
void ExecProcess::end_if_read() {
  if (!status_ || hung_up_) return;
  bool over = true;
  for (const std::unique_ptr<OutputPipe>& each : outputs_) {
    if (each == nullptr) continue;
    OutputPipe::State state = each->over() ? OutputPipe::State::kOver : OutputPipe::State::kOpen;
    while (state == OutputPipe::State::kOpen && on_the_way_ < kExecBytesMax) state = each->read();
    if (state == OutputPipe::State::kOpen) return pace();  // The client takes the rest in its time.
    over = over && state == OutputPipe::State::kOver;
  }
  if (over || !terminal_.valid()) return end();
  if (!timer_) timer_ = loop_.call_after(kTerminalPatience, [this] { end(); });
}

void ExecProcess::end() {
  for (const std::unique_ptr<OutputPipe>& each : outputs_) {
    if (each != nullptr) each->set_watch(OutputPipe::Watched::kNo);
  }
  const auto ended = std::exchange(ended_, nullptr);
  if (ended) ended({.id = id_, .status = static_cast<std::uint32_t>(*status_), .error = {}});
}

void ExecProcess::hang_up() {
  if (std::exchange(hung_up_, true)) return;
  pace();
  if (status_) return end();
  kill_session(SIGHUP);
  kill_session(SIGCONT);
  // Closing a terminal signals its foreground processes, too.
  input_.reset();
  for (std::unique_ptr<OutputPipe>& each : outputs_) each.reset();
  terminal_.reset();
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.call_after(kHangUpPatience, [this] {
    timer_.reset();
    kill_session(SIGKILL);
  });
}

/// Signals all processes of the command's session. Precondition: the command is not yet reaped, so
/// its number names no other session.
void ExecProcess::kill_session(int signal) const {
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename();
    pid_t process = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), process);
    if (read.ec != std::errc() || session_of(name) != pid_) continue;
    (void)::kill(process, signal);
  }
}

}  // namespace orrery

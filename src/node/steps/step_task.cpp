#include "node/steps/step_task.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace orrery {
namespace {

struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return environment_error(
        fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)));
  }
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void set_nonblocking(const FileDescriptor& end) { (void)::fcntl(end.get(), F_SETFL, O_NONBLOCK); }

}  // namespace

PipeReader::PipeReader(RealLoop& loop, FileDescriptor reading, Handle handle)
    : loop_(loop), reading_(std::move(reading)), handle_(std::move(handle)) {
  set_nonblocking(reading_);
  resume();
}

void PipeReader::pause() {
  if (watch_ != WatchId::kNone) loop_.unwatch(std::exchange(watch_, WatchId::kNone));
}

void PipeReader::resume() {
  if (watch_ != WatchId::kNone || !reading_.valid()) return;
  if (const Result<WatchId> watch = loop_.watch(reading_.get(), EPOLLIN, *this)) watch_ = *watch;
}

void PipeReader::drain() {
  constexpr int kChunksMax = 64;  // a process it left behind may write for ever
  for (int chunks = 0; chunks < kChunksMax && take(); ++chunks) {
  }
}

bool PipeReader::take() {
  std::array<char, std::size_t{32} << 10> chunk;
  if (!reading_.valid()) return false;
  const ssize_t got = ::read(reading_.get(), chunk.data(), chunk.size());
  if (got > 0) {
    handle_({chunk.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  pause();
  reading_.reset();
  return false;
}

PipeWriter::PipeWriter(RealLoop& loop, FileDescriptor writing, Callback taken)
    : loop_(loop), writing_(std::move(writing)), taken_(std::move(taken)) {
  set_nonblocking(writing_);
}

void PipeWriter::put(std::string_view bytes) {
  waiting_ += bytes;
  write();
}

void PipeWriter::finish() {
  finished_ = true;
  if (waiting_.empty()) close();
}

void PipeWriter::write() {
  while (writing_.valid() && !waiting_.empty()) {
    const ssize_t wrote = ::write(writing_.get(), waiting_.data(), waiting_.size());
    if (wrote >= 0) {
      waiting_.erase(0, static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {
      if (watch_ != WatchId::kNone) return;
      const Result<WatchId> watch = loop_.watch(writing_.get(), EPOLLOUT, *this);
      if (watch) watch_ = *watch;
      return;
    } else if (errno != EINTR) {
      close();
    }
  }
  waiting_.clear();
  unwatch();
  if (finished_) close();
  taken_();
}

void PipeWriter::unwatch() {
  if (watch_ != WatchId::kNone) loop_.unwatch(std::exchange(watch_, WatchId::kNone));
}

void PipeWriter::close() {
  unwatch();
  writing_.reset();
}

Result<std::unique_ptr<StepTask>> StepTask::start(RealLoop& loop, const StepTaskStart& start) {
  Result<Pipe> output = make_pipe();
  if (!output) return forward_error(output);
  Result<Pipe> errors = make_pipe();
  if (!errors) return forward_error(errors);
  Result<Pipe> input = make_pipe();
  if (!input) return forward_error(input);
  const bool reads = start.input == TaskInput::kPipe;
  const Result<pid_t> pid = start_process({.command = start.command,
                                           .environment = start.environment,
                                           .directory = start.directory,
                                           .user = {},
                                           .output = output->writing.get(),
                                           .input = reads ? input->reading.get() : -1,
                                           .errors = errors->writing.get(),
                                           .groups = {}});
  if (!pid) return tl::unexpected(pid.error());
  auto task = std::make_unique<StepTask>();
  task->pid_ = *pid;
  const auto& wrote = start.wrote;
  task->output_ = std::make_unique<PipeReader>(
      loop, std::move(output->reading), [wrote](std::string_view bytes) { wrote(1, bytes); });
  task->errors_ = std::make_unique<PipeReader>(
      loop, std::move(errors->reading), [wrote](std::string_view bytes) { wrote(2, bytes); });
  if (reads) {
    task->input_ = std::make_unique<PipeWriter>(loop, std::move(input->writing), start.taken);
  }
  return task;
}

void StepTask::signal(int number) const { (void)::kill(-pid_, number); }

void StepTask::finish() {
  // Its group number is not reused before it is reaped.
  signal(SIGKILL);
  output_->drain();
  errors_->drain();
  output_->pause();
  errors_->pause();
}

void StepTask::pause() {
  output_->pause();
  errors_->pause();
}

void StepTask::resume() {
  output_->resume();
  errors_->resume();
}

}  // namespace orrery

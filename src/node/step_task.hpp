// node/step_task.hpp - one task of a step: its process, what it reads and what it writes.
//
// Owned by StepServer, used on its loop. The process leads a group of its own and dies with the
// server. A task that nobody reads for waits, and one that does not read makes whoever feeds it
// wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/real_loop.hpp"
#include "node/rank_process.hpp"

namespace orrery {

/// The reading end of a pipe: hands on what comes until there is nobody left who could write.
class PipeReader final : public ReadyHandler {
 public:
  using Handle = std::function<void(std::string_view)>;

  /// `loop` outlives it.
  PipeReader(RealLoop& loop, FileDescriptor reading, Handle handle);
  PipeReader(const PipeReader&) = delete;
  PipeReader& operator=(const PipeReader&) = delete;
  ~PipeReader() override { pause(); }

  void pause();
  void resume();
  /// Takes what is there, of a process that has ended.
  void drain();
  void on_ready(std::uint32_t) override { (void)take(); }

 private:
  bool take();

  RealLoop& loop_;
  FileDescriptor reading_;
  Handle handle_;
  WatchId watch_ = WatchId::kNone;
};

/// The writing end of a pipe.
class PipeWriter final : public ReadyHandler {
 public:
  /// `taken` is called when all that was put in has left, or nobody reads any more.
  PipeWriter(RealLoop& loop, FileDescriptor writing, Callback taken);
  PipeWriter(const PipeWriter&) = delete;
  PipeWriter& operator=(const PipeWriter&) = delete;
  ~PipeWriter() override { unwatch(); }

  void put(std::string_view bytes);
  /// Whether something that was put in has not left.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  /// There is no more to come.
  void finish();
  void on_ready(std::uint32_t) override { write(); }

 private:
  void write();
  void close();
  void unwatch();

  RealLoop& loop_;
  FileDescriptor writing_;
  Callback taken_;
  std::string waiting_;
  bool finished_ = false;
  WatchId watch_ = WatchId::kNone;
};

/// Whether a task reads what srun reads.
enum class TaskInput : std::uint8_t { kNone, kPipe };

struct StepTaskStart {
  const std::vector<std::string>& command;
  const Variables& environment;
  const std::string& directory;
  TaskInput input = TaskInput::kNone;
  std::function<void(std::uint32_t descriptor, std::string_view bytes)> wrote;
  Callback taken;  ///< what was put in
};

class StepTask {
 public:
  /// Errors: what failed, with the program's name.
  [[nodiscard]] static Result<std::unique_ptr<StepTask>> start(RealLoop& loop,
                                                               const StepTaskStart& start);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// To all of its process group.
  void signal(int number) const;
  /// Its process has ended and is about to be reaped: takes the rest, ends what it left behind.
  void finish();
  void pause();
  void resume();
  /// Null: it reads nothing.
  [[nodiscard]] PipeWriter* input() { return input_.get(); }

 private:
  pid_t pid_ = -1;
  std::unique_ptr<PipeReader> output_;
  std::unique_ptr<PipeReader> errors_;
  std::unique_ptr<PipeWriter> input_;
};

}  // namespace orrery

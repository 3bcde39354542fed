// node/steps/step_task.hpp - one task of a step: its process, its input and its output.
//
// Owned by StepServer, used on its loop. The process leads a group of its own and dies with the
// server. A task blocks while its output is not read, and holds its sender back while it does not
// read its input.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "node/keeper/rank_process.hpp"

namespace orrery {

/// The reading end of a pipe: passes on what comes until no process is left that could write.
class PipeReader final : public ReadyHandler {
 public:
  using Handle = std::function<void(std::string_view)>;

  /// `loop` outlives the reader.
  PipeReader(RealLoop& loop, FileDescriptor reading, Handle handle);
  PipeReader(const PipeReader&) = delete;
  PipeReader& operator=(const PipeReader&) = delete;
  ~PipeReader() override { pause(); }

  void pause();
  void resume();
  /// Reads what is left of a process that has ended.
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
  /// `taken` is called when all bytes that were put in have left, or no reader is left.
  PipeWriter(RealLoop& loop, FileDescriptor writing, Callback taken);
  PipeWriter(const PipeWriter&) = delete;
  PipeWriter& operator=(const PipeWriter&) = delete;
  ~PipeWriter() override { unwatch(); }

  void put(std::string_view bytes);
  /// Whether bytes that were put in have not left.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  /// Closes the pipe after the bytes that wait.
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

/// Whether a task reads srun's input.
enum class TaskInput : std::uint8_t { kNone, kPipe };

struct StepTaskStart {
  const std::vector<std::string>& command;
  const Variables& environment;
  const std::string& directory;
  TaskInput input = TaskInput::kNone;
  std::function<void(std::uint32_t descriptor, std::string_view bytes)> wrote;
  Callback taken;  ///< called when the input that was put in is taken
};

class StepTask {
 public:
  /// Errors: what failed, with the program's name.
  [[nodiscard]] static Result<std::unique_ptr<StepTask>> start(RealLoop& loop,
                                                               const StepTaskStart& start);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Sends a signal to all of its process group.
  void signal(int number) const;
  /// Its process has ended and is about to be reaped: reads the rest, ends what it left behind.
  void finish();
  void pause();
  void resume();
  /// Returns null where it reads nothing.
  [[nodiscard]] PipeWriter* input() { return input_.get(); }

 private:
  pid_t pid_ = -1;
  std::unique_ptr<PipeReader> output_;
  std::unique_ptr<PipeReader> errors_;
  std::unique_ptr<PipeWriter> input_;
};

}  // namespace orrery

// adapter/engine_process.hpp - the process of an inference engine, with a guard that leaves nothing
// of it behind.
//
// Between Orrery's program and the engine stands the guard, a process without a program of its own:
//
//   1. It runs the engine in a process group of its own, so that signals to the replica's group do
//      not reach the engine.
//   2. It adopts what the engine's processes leave (PR_SET_CHILD_SUBREAPER).
//   3. When the engine ends, it kills what is left, then reports how it ended.
//   4. When its starter ends, in whatever way, its pipe closes and it kills everything. The engine
//      dies with the guard, too (PR_SET_PDEATHSIG).
//
// Used on the loop's thread. start() forks: no other thread may hold a lock then that the child
// needs, so it is called before any is made. Its end kills the engine.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"

namespace orrery {

/// How an engine ended.
struct EngineEnd {
  bool started = true;  ///< whether its program could be run
  int status = 0;       ///< as of waitpid(2); of one that did not start, errno

  /// "exited with status 3", "was killed by signal 9 (Killed)", "cannot be run: ..".
  [[nodiscard]] std::string text() const;
};

class EngineProcess final : public ReadyHandler {
 public:
  using Ended = std::function<void(const EngineEnd&)>;

  /// `ended` runs once, on the loop; it may destroy the process. The engine inherits standard
  /// output and error. Precondition: `command` is not empty. Error: no process or socket is left.
  [[nodiscard]] static Result<std::unique_ptr<EngineProcess>> start(
      RealLoop& loop, const std::vector<std::string>& command, Ended ended);
  EngineProcess(RealLoop& loop, FileDescriptor link, Ended ended)
      : loop_(loop), link_(std::move(link)), ended_(std::move(ended)) {}
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;
  ~EngineProcess() override;

  /// Sends SIGTERM to the engine's first process.
  void terminate();
  /// Kills the engine and all that it started; `ended` follows.
  void kill();

  void on_ready(std::uint32_t events) override;

 private:
  void order(char order);

  RealLoop& loop_;
  FileDescriptor link_;  ///< to the guard, which kills when it is closed
  Ended ended_;
  pid_t guard_ = 0;
  WatchId watch_ = WatchId::kNone;
};

}  // namespace orrery

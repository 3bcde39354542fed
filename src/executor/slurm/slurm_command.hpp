// executor/slurm/slurm_command.hpp - one run of a program of Slurm beside the loop.
//
// Owned by SlurmManager, on the loop. It runs in a session of its own, which is killed as a whole
// when its time is over, when it prints too much, and with this object. Its environment is what it
// is given and nothing else. Cost: a process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/system/real_env.hpp"

namespace orrery {

struct SlurmCommandStart {
  std::vector<std::string> words;      ///< the program, looked for in PATH, and its arguments
  std::string input;                   ///< its standard input
  std::vector<std::string> variables;  ///< its environment, NAME=VALUE
  Duration timeout;
  std::size_t output_max = std::size_t{64} << 20;
};

/// How a program ended.
struct SlurmCommandEnd {
  bool started = false;
  /// Why it did not end by itself: it could not be started, ran too long, printed too much, or was
  /// killed. Empty: it exited.
  std::string failure;
  int status = 0;      ///< with which it exited
  std::string output;  ///< whole, unless there is a failure
  std::string errors;  ///< the first kSlurmErrorsMax bytes
};

inline constexpr std::size_t kSlurmErrorsMax = 64 << 10;

class SlurmCommand final : public ReadyHandler {
 public:
  using Ended = std::function<void(SlurmCommandEnd end)>;

  /// `ended` is called once, later, on the loop, as the last use of this object, also when the
  /// program could not be started.
  SlurmCommand(RealEnv& real, const SlurmCommandStart& start, Ended ended);
  SlurmCommand(const SlurmCommand&) = delete;
  SlurmCommand& operator=(const SlurmCommand&) = delete;
  ~SlurmCommand() override;

  void on_ready(std::uint32_t events) override;

 private:
  /// A descriptor on the loop and, of a pipe, what came out of it.
  struct Source {
    FileDescriptor fd;
    WatchId watch = WatchId::kNone;
    std::string bytes;
  };

  [[nodiscard]] std::string start(const SlurmCommandStart& start);
  [[nodiscard]] std::string watch(Source& source);
  void unwatch(Source& source);
  void read(Source& source);
  void stop(std::string failure);
  void finish();

  RealEnv& real_;
  Ended ended_;
  std::size_t output_max_;
  pid_t child_ = 0;  ///< not yet reaped; 0: none
  Source output_;
  Source errors_;
  Source process_;
  std::optional<TimerId> timer_;
  SlurmCommandEnd end_;
};

}  // namespace orrery

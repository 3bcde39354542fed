// node/exec/exec_process.hpp - a command that runs beside the ranks of an attempt for a client:
// its process, its pipes or its terminal, and what is on its way between it and the client.
//
// Owned by the keeper's ExecTable, used on its loop; never blocks it. Output is read while fewer
// than kExecBytesMax bytes are not reported as taken, and input is kept until the command takes it.
// The end of a command is reported after its output. Precondition: SIGPIPE is ignored.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/real_loop.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/keeper/keeper_wire.hpp"

namespace orrery {

class ExecProcess {
 public:
  /// Where the command runs and which callbacks it reports to.
  struct Setup {
    RealLoop& loop;
    const RankStart& rank;  ///< valid only during start(), as are the next two
    const KeeperLaunch& launch;
    std::vector<int> groups;  ///< cgroup.procs of each group it joins, open for writing
    std::function<void(const ExecOutput&)> output;
    /// The last call, never inside start().
    std::function<void(const ExecEnd&)> ended;
  };

  /// Errors: a pipe or terminal, or why the program could not be started.
  [[nodiscard]] static Result<std::unique_ptr<ExecProcess>> start(const ExecOpen& open,
                                                                  const Setup& setup);
  ExecProcess(const ExecOpen& open, const Setup& setup);
  ExecProcess(const ExecProcess&) = delete;
  ExecProcess& operator=(const ExecProcess&) = delete;
  ~ExecProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void take(const ExecInput& input);
  /// Notes that its process has ended and is not yet reaped. `ended` follows, perhaps inside.
  void note_end(int status);
  /// Ends a command whose client has gone: sends SIGHUP, and SIGKILL after 10 s.
  void hang_up();

 private:
  class InputPipe;
  class OutputPipe;

  [[nodiscard]] Status open_pipes();
  [[nodiscard]] Status open_terminal(TerminalSize size);
  [[nodiscard]] Status run(const ExecOpen& open, const Setup& setup);
  void note_input_taken(std::uint64_t bytes);
  void note_output(const ExecOutput& output);
  void pace();
  void end_if_read();
  void end();
  void kill_session(int signal) const;

  RealLoop& loop_;
  std::uint64_t id_;
  std::function<void(const ExecOutput&)> told_;
  std::function<void(const ExecEnd&)> ended_;
  pid_t pid_ = 0;
  std::unique_ptr<InputPipe> input_;
  std::array<std::unique_ptr<OutputPipe>, 2> outputs_;  ///< a terminal has the first alone
  FileDescriptor terminal_;            ///< its controlling side; none: the command has pipes
  std::array<FileDescriptor, 3> own_;  ///< the command's ends, until it is started
  std::uint64_t on_the_way_ = 0;       ///< bytes of its output that are not reported as taken
  std::optional<int> status_;          ///< once it has ended
  std::optional<TimerId> timer_;       ///< to kill it, or to end it without the rest of its output
  bool hung_up_ = false;
};

}  // namespace orrery

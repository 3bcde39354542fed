// node/keeper/rank_process.hpp - starts one process of a job, and ends what is left of a process
// tree.
//
// Used by the keeper, which has a single thread and may therefore fork. A process that is started
// leads a session and a process group of its own, dies with its starter, gains no privilege by
// executing anything, reads only the input it is given and writes into the pipe it is given.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "node/launch/launch_environment.hpp"

namespace orrery {

/// The user and groups that processes run as.
struct ProcessUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
};

/// A file that a separate process copies its input into, in place of running a program.
struct CopyFile {
  std::string path;  ///< relative to the directory
  enum class Begin : std::uint8_t { kAnew, kAppend } begin = Begin::kAnew;
};

struct ProcessStart {
  std::vector<std::string> command;  ///< at least the program; searched in the environment's PATH
  const Variables& environment;
  std::string directory;
  std::optional<ProcessUser> user;  ///< none: the keeper's own
  /// Becomes standard output and standard error; -1: a copy process writes to its file instead.
  int output = -1;
  int input = -1;           ///< becomes standard input; -1: there is nothing to read
  int errors = -1;          ///< becomes standard error; -1: `output` does
  std::vector<int> groups;  ///< cgroup.procs of each it joins, open for writing
  /// Whether `input` is a terminal that becomes its controlling one.
  enum class Terminal : std::uint8_t { kNone, kOwn } terminal = Terminal::kNone;
};

/// Starts a process and waits until it runs its program. Errors: what failed, with the program's
/// name. The limits on open files and locked memory are raised as far as allowed; no core is
/// written.
[[nodiscard]] Result<pid_t> start_process(const ProcessStart& start);

/// Starts a process that copies its input into a file until the input ends, and waits until the
/// file is open. It is opened as the user. Bytes that cannot be written are left out; a line in the
/// file gives their number. The command is not used. Errors: what failed, with the file's name.
[[nodiscard]] Result<pid_t> start_copy(const ProcessStart& start, const CopyFile& file);

/// Makes orphaned descendants children of this process from now on.
[[nodiscard]] Status adopt_orphans();

/// Sends SIGKILL to every child of this process; their children become its own as they end, so that
/// repeating the call whenever one has ended leaves none. Precondition: a single thread.
void kill_children();

}  // namespace orrery

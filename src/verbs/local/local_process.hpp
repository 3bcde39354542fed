// verbs/local/local_process.hpp - processes of a local cluster: started so that they outlive this
// one, found again by number and start, ended for good.
//
// A number alone may have been reused; with the time of its start, counted from the boot of the
// machine, it names one process. Linux. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/time.hpp"

namespace orrery {

/// One process of this boot of the machine.
struct ProcessIdentity {
  std::int64_t pid = 0;       ///< 0: none
  std::uint64_t started = 0;  ///< clock ticks after the boot

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// Returns the process with this number now; none where there is none, or only a zombie.
[[nodiscard]] ProcessIdentity identity_of(std::int64_t pid);

/// A handle of a process that need not be a child; while it is held the number is not reused.
class ProcessHandle {
 public:
  /// The handle of a process that has ended is not valid.
  explicit ProcessHandle(const ProcessIdentity& process);

  [[nodiscard]] bool alive() const { return !ended_within(Duration()); }
  /// Waits up to `patience` for its end.
  [[nodiscard]] bool ended_within(Duration patience) const;
  void signal(int number) const;

 private:
  FileDescriptor handle_;
};

struct LocalProcessStart {
  std::string program;  ///< path
  std::vector<std::string> arguments;
  std::string log;  ///< file that its output is appended to
};

/// Starts the program in a session of its own, with empty standard input. Errors: no such program,
/// a log that cannot be written.
[[nodiscard]] Result<ProcessIdentity> start_process(const LocalProcessStart& start);

/// Returns the directory of the running program: the release's other programs are beside it.
[[nodiscard]] std::string program_directory();

/// Returns a name of this boot of the machine.
[[nodiscard]] std::string machine_boot();

/// Returns the process that holds the lock on a file (flock); none: it is free.
[[nodiscard]] ProcessIdentity lock_holder(const std::string& path);

}  // namespace orrery

// base/launch/progress_pipe.hpp - the writing end of the pipe that ORRERY_PROGRESS names, into
// which a program reports to the keeper of its node.
//
// Used on one thread. Without a pipe it does nothing. Each line is one write of less than 4096
// bytes, so the lines of several processes do not mix. No later line repeats an earlier one, so a
// full pipe is waited for, at most five seconds.
#pragma once

#include <string>

#include "base/system/file_descriptor.hpp"

namespace orrery {

class ProgressPipe {
 public:
  /// `path`: a named pipe; "": none.
  explicit ProgressPipe(const std::string& path);

  /// Precondition: `json` is one line.
  void write(const std::string& json);

 private:
  FileDescriptor pipe_;
};

}  // namespace orrery

// node/steps/step_output.hpp - srun's output of the tasks of a step: line by line, perhaps
// labelled, to srun's own output or to files.
//
// Owned by StepClient. Writing blocks, which holds back tasks that write faster than the output is
// read. Invariant: lines of two tasks never mix, except a line longer than 64 KiB.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "node/steps/srun_options.hpp"

namespace orrery {

/// A task and where it runs, for the names of files.
struct TaskPlace {
  std::uint32_t task = 0;
  std::uint32_t node = 0;  ///< of the step
  std::string host;
};

class StepOutputs {
 public:
  /// `options` outlives it; `last` is the largest number of a task.
  StepOutputs(const SrunOptions& options, SrunFileFacts facts, std::uint32_t last);

  /// Writes output of a task. Errors: what cannot be written, also for lack of space. Output whose
  /// reader has gone is lost without an error.
  [[nodiscard]] Status write(const TaskPlace& place, std::uint32_t descriptor,
                             std::string_view bytes);
  /// Ends the task's output.
  [[nodiscard]] Status finish(const TaskPlace& place);

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  ///< task, descriptor

  [[nodiscard]] Status put(const TaskPlace& place, std::uint32_t descriptor,
                           std::string_view bytes);
  struct Sink {
    int descriptor = -1;
    std::string name;
  };
  [[nodiscard]] Result<Sink> sink(const TaskPlace& place, std::uint32_t descriptor);

  const SrunOptions& options_;
  SrunFileFacts facts_;
  std::size_t label_width_ = 1;
  std::map<Key, std::string> begun_;  ///< lines not yet complete
  std::map<std::string, FileDescriptor> files_;
};

}  // namespace orrery

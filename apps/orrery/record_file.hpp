// apps/orrery/record_file.hpp - a run on disk: what was asked, every input and every event, so that
// `orrery replay` can play the inputs again and compare event by event.
//
// A directory with setup.json, inputs.log and events.log (docs/formats.md, "Journal").
#pragma once

#include <memory>
#include <string>

#include "apps/orrery/simulate_request.hpp"
#include "store/file_sink.hpp"

namespace orrery {

struct RunRecord {
  std::unique_ptr<FileSink> events;
  std::unique_ptr<FileSink> inputs;

  /// DIR/POLICY is made. Errors: of the file system.
  [[nodiscard]] static Result<RunRecord> create(const std::string& directory,
                                                const std::string& label,
                                                const SimulateOptions& asked);
  [[nodiscard]] Status finish();
};

/// What setup.json of a record says. Errors: no such file, not one of ours.
[[nodiscard]] Result<SimulateOptions> recorded_options(const std::string& directory);

}  // namespace orrery

// verbs/record/record_file.hpp - a run on disk: its options, every input and every event, so that
// `orrery replay` can play the inputs again and compare event by event.
//
// A directory with setup.json, inputs.log, events.log and, for a run with --catalog, a copy of it
// in catalog (docs/formats.md, "Record"). Specs are in setup.json; a trace, series and throughputs,
// which may be large, stay where they are and are named by their absolute path.
#pragma once

#include <memory>
#include <string>

#include "store/file_sink.hpp"
#include "verbs/simulate/simulate_request.hpp"

namespace orrery {

struct RunRecord {
  std::unique_ptr<FileSink> events;
  std::unique_ptr<FileSink> inputs;
  std::string setup;  ///< digest of setup.json

  /// Makes DIR/POLICY, or writes it anew. Errors: those of the file system.
  [[nodiscard]] static Result<RunRecord> create(const CommandOptions& options,
                                                const SimulateOptions& asked,
                                                const SimulateRequest& request,
                                                const NamedRun& run);
  [[nodiscard]] Status finish();
};

/// Reads setup.json of a record. Errors: no such file, not a record of this program.
[[nodiscard]] Result<SimulateOptions> recorded_options(const std::string& directory);

/// Returns the digest of setup.json, as the heads of the record's journals have it ("setup
/// 0123456789abcdef"). Errors: no such file.
[[nodiscard]] Result<std::string> recorded_setup(const std::string& directory);

/// Returns the options with the catalog of the record where they name none.
[[nodiscard]] CommandOptions with_recorded_catalog(CommandOptions options,
                                                   const std::string& directory);

}  // namespace orrery

// apps/orrery/record_file.hpp - a run on disk: what was asked, every input and every event, so that
// `orrery replay` can play the inputs again and compare event by event.
//
// A directory with setup.json, inputs.log and events.log (docs/formats.md, "Journal").
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "apps/orrery/simulate_request.hpp"
#include "control/journal.hpp"

namespace orrery {

/// Writes a journal into a file. The first failed write is remembered.
class FileSink : public JournalSink {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FileSink>> create(const std::string& path);
  void write(std::string_view bytes) override;
  /// Errors: any write that failed, or the close.
  [[nodiscard]] Status close();

  struct Closer {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  FileSink(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

 private:
  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  bool failed_ = false;
};

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

// store/file_sink.hpp - writes a journal to a file, for a record that is read later.
//
// Made by the recorder of a run. Not synced: a crash of the machine may lose the end of the record.
// One thread. Cost: that of buffered writes.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "control/log/journal_frame.hpp"

namespace orrery {

class FileSink : public JournalSink {
 public:
  /// Creates or truncates the file. Errors: of the file system.
  [[nodiscard]] static Result<std::unique_ptr<FileSink>> create(const std::string& path);
  /// After the first failed write nothing more is written.
  void write(std::string_view bytes) override;
  /// Passes buffered bytes to the system. Errors: any write that failed.
  [[nodiscard]] Status flush();
  /// Closes the file; must be the last call. Errors: any write that failed, or the close.
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

}  // namespace orrery

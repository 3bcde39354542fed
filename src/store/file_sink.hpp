// store/file_sink.hpp - a journal into a file, for a record that is read later.
//
// Made by whoever records a run. Not made durable: what a crash of the machine takes is the end of
// the record. One thread. Cost: that of buffered writes.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "control/journal_frame.hpp"

namespace orrery {

class FileSink : public JournalSink {
 public:
  /// Begins the file anew. Errors: of the file system.
  [[nodiscard]] static Result<std::unique_ptr<FileSink>> create(const std::string& path);
  /// The first write that fails is remembered; nothing is written after it.
  void write(std::string_view bytes) override;
  /// Hands what is buffered to the system. Errors: any write that failed.
  [[nodiscard]] Status flush();
  /// The last call. Errors: any write that failed, or the close.
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

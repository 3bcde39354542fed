// node/keeper/rank_log.hpp - the output of one process: read from its pipe into a file that is
// rotated, the newest part kept in memory for live readers.
//
// Owned by the keeper, one for each process; used on its loop. It takes all output, so that a
// process never waits for a disk that is full: bytes that cannot be written are counted and stay in
// the tail, and a line in the log gives their number once there is room. Only a copy into a file of
// the job's own holds its process up. Cost: one write for each 64 KiB read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_loop.hpp"
#include "node/launch/output_copy.hpp"
#include "node/log_times.hpp"

namespace orrery {

struct LogLimits {
  std::uint64_t file_bytes = std::uint64_t{64} << 20;  ///< size at which a file is rotated
  /// Files kept: path, path.1 (newer), path.2, ..; path.begin holds how many bytes came before
  /// path.
  std::uint32_t files = 4;
};

/// Bytes of a log from `from` on; the next question starts at their end.
struct LogPart {
  std::uint64_t from = 0;
  std::string bytes;
};

class RankLog final {
 public:
  static constexpr std::size_t kTailBytes = std::size_t{64} << 10;

  struct Place {
    RealLoop& loop;
    Storage& storage;
    std::string path;
    LogLimits limits;
  };

  /// Returns the name of a file of the log: of the newest, or of one rotated `age` times.
  [[nodiscard]] static std::string file_name(const std::string& path, std::uint32_t age);
  /// Returns how many bytes of the log precede those of its newest file.
  [[nodiscard]] static std::uint64_t begin_of(Storage& storage, const std::string& path);

  /// The output streams of a process: standard error has a pipe of its own where it is copied
  /// separately.
  enum class Stream : std::uint8_t { kOutput, kErrors };

  /// Opens the pipe; writing_end() goes to the process. An existing log is continued. Errors: the
  /// pipe or the file.
  [[nodiscard]] static Result<std::unique_ptr<RankLog>> open(const Place& place);
  explicit RankLog(const Place& place);
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;
  ~RankLog();

  /// Opens a pipe for standard error. Errors: the pipe.
  [[nodiscard]] Status split_errors();
  /// Returns -1 where there is no such pipe.
  [[nodiscard]] int writing_end(Stream stream = Stream::kOutput) const;
  /// Closes the writing ends once the process has them.
  void close_writing_ends();
  /// Writes the stream's output to `copy`, too.
  void copy_to(Stream stream, FileDescriptor copy);
  /// Nothing more is written: copies are closed once they have taken what waits for them.
  void end_copies();

  /// Reads all available output; called when the process has ended.
  void drain();
  /// Returns the tail's bytes from byte `from` of the log on, or from the tail's begin where that
  /// is later.
  [[nodiscard]] LogPart read(std::uint64_t from) const;
  [[nodiscard]] std::string_view tail() const { return tail_; }
  /// Returns how many bytes did not get into the file.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  enum class More { kYes, kNo };
  /// One pipe, and where its output is copied.
  class Source;
  /// Precondition: the stream has no pipe.
  [[nodiscard]] Status open_source(Stream stream);
  [[nodiscard]] std::unique_ptr<Source>& source(Stream stream) {
    return stream == Stream::kOutput ? output_ : errors_;
  }
  void keep(std::string_view bytes);
  /// Writes into the file how much of the log is missing there. Returns whether nothing is left to
  /// report.
  [[nodiscard]] bool say_dropped();
  void rotate();

  Place place_;
  RealClock clock_;
  std::unique_ptr<File> file_;
  std::optional<LogTimes> times_;
  std::unique_ptr<Source> output_;
  std::unique_ptr<Source> errors_;  ///< none: standard error goes where the output goes
  std::string tail_;
  std::uint64_t end_ = 0;  ///< of the log so far
  std::uint64_t dropped_ = 0;
  std::uint64_t dropped_unsaid_ = 0;  ///< since the newest line that reports it
};

}  // namespace orrery

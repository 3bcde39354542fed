// node/log_files.hpp - the part of a RankLog's log that is on disk, newest file and older ones
// alike, addressed by position in the whole log.
//
// A value: the state when look() was called. The log's owner may write and rotate meanwhile: then a
// read ends early. Bytes that the disk did not take are missing, and those after them seem to come
// earlier. Cost: O(files) to look, one read a file to read.
#pragma once

#include <string>
#include <vector>

#include "base/env.hpp"
#include "node/keeper/rank_log.hpp"

namespace orrery {

class LogFiles {
 public:
  /// Finds the files of the log at `path`.
  [[nodiscard]] static LogFiles look(Storage& storage, const std::string& path);

  /// Whether there is such a log.
  [[nodiscard]] bool found() const { return !files_.empty(); }
  /// Position of the first byte that is still there.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  /// Bytes that were ever written.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// Returns at most `size_max` bytes from byte `from` of the log on, or from begin() where that is
  /// later.
  [[nodiscard]] LogPart read(std::uint64_t from, std::size_t size_max) const;

 private:
  struct Piece {
    std::unique_ptr<File> file;
    std::uint64_t from = 0;  ///< position of its first byte
  };
  std::vector<Piece> files_;  ///< oldest first
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace orrery

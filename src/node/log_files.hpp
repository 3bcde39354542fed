// node/log_files.hpp - what the disk has of a log that a RankLog wrote, newest file and older ones
// alike, by where in the whole log it stands.
//
// A value: as it was when looked at. The log's owner may write on meanwhile, and rotate: then what
// is read ends early. Bytes that the disk did not take are missing, and those after them seem to
// come earlier. Cost: O(files) to look, one read a file to read.
#pragma once

#include <string>
#include <vector>

#include "base/env.hpp"
#include "node/rank_log.hpp"

namespace orrery {

class LogFiles {
 public:
  /// Of the log at `path`.
  [[nodiscard]] static LogFiles look(Storage& storage, const std::string& path);

  /// Whether there is such a log.
  [[nodiscard]] bool found() const { return !files_.empty(); }
  /// Of the first byte that is still there.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  /// Bytes that were ever written.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// At most `size_max` bytes from byte `from` of the log on, or from begin() where that is later.
  [[nodiscard]] LogPart read(std::uint64_t from, std::size_t size_max) const;

 private:
  struct Piece {
    std::unique_ptr<File> file;
    std::uint64_t from = 0;  ///< of its first byte
  };
  std::vector<Piece> files_;  ///< oldest first
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace orrery

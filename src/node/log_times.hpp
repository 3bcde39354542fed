// node/log_times.hpp - when the bytes of a rank's log were written: marks of a byte and a time of
// day in a file beside the log.
//
// Owned by the RankLog; one thread. A mark is made when something is written and the newest mark is
// older than its interval, a second at first. When there are kMarksMax marks, every second one is
// dropped and the interval doubles, so the file is bounded. A mark that the disk does not take is
// missing: then a question is answered with an earlier byte. Cost: one small write a mark.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env.hpp"

namespace orrery {

class LogTimes {
 public:
  static constexpr std::size_t kMarksMax = 65'536;

  /// Continues the marks of the log at `log_path`, if there are any.
  LogTimes(Storage& storage, const std::string& log_path);

  /// Notes that bytes from `offset` on are written now.
  void note(std::uint64_t offset, Instant now);

  /// Returns a position in the log at `log_path` such that everything written at `since` or later
  /// follows it, and everything before it was written at most an interval earlier than `since`; the
  /// highest number where nothing was written since. None: there are no marks.
  [[nodiscard]] static std::optional<std::uint64_t> offset_since(Storage& storage,
                                                                 const std::string& log_path,
                                                                 Instant since);

 private:
  void thin_out();

  Storage& storage_;
  std::string path_;
  std::unique_ptr<File> file_;  ///< nullptr: it cannot be written
  std::size_t marks_ = 0;
  std::optional<Instant> newest_;
  Duration interval_ = Duration::seconds(1);
};

}  // namespace orrery

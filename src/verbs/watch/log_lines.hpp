// verbs/watch/log_lines.hpp - what ranks wrote, as a reader of several of them can tell it apart,
// and how far each was read.
//
// Made by a verb for one stream of ReadLog; one thread. Lines of several ranks are whole: the rank
// stands in front of each. Memory: one unfinished line a rank, at most 64 KiB and one chunk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Which output of a job is read, as typed.
struct LogSelection {
  std::string job;
  std::uint32_t attempt = 0;  ///< 0: the newest
  std::optional<std::uint32_t> gang;
  std::optional<std::uint32_t> rank;
  std::string node;
  std::string since;  ///< an instant or an age; empty: from the first
  std::optional<std::uint32_t> tail;
  bool follow = false;
};

/// Returns the first request. Error (kInput): the job is no number.
[[nodiscard]] Result<v1::ReadLogRequest> log_request(const LogSelection& selection);

/// Returns the selection of `orrery attach`: the last 10 lines of each rank and what follows.
[[nodiscard]] LogSelection attached(LogSelection selection);
/// Returns what a person who attaches should know.
[[nodiscard]] std::string attach_text(const std::string& job);

enum class LogBytes : std::uint8_t { kRaw, kEscaped };

class LogLines {
 public:
  LogLines(v1::ReadLogRequest request, LogBytes bytes)
      : request_(std::move(request)), bytes_(bytes) {}

  /// What is shown of a chunk.
  struct Shown {
    std::string message;  ///< for standard error: a note, output that is no longer kept
    std::string bytes;    ///< for standard output
  };
  [[nodiscard]] Shown show(const v1::LogChunk& chunk);
  /// Remembers that a chunk was taken.
  void remember(const v1::LogChunk& chunk);
  /// Returns what to ask for to go on behind what was taken.
  [[nodiscard]] const v1::ReadLogRequest& request() const { return request_; }
  /// Returns the lines that were begun, each with its end, and forgets them.
  [[nodiscard]] std::string take_unfinished();

 private:
  using Rank = std::pair<std::uint32_t, std::uint32_t>;  ///< gang, rank

  [[nodiscard]] std::string label(const Rank& rank) const;
  [[nodiscard]] std::string shown(std::string_view bytes) const;
  [[nodiscard]] std::string whole_lines(const Rank& rank, std::string_view bytes);

  v1::ReadLogRequest request_;
  LogBytes bytes_;
  bool gangs_ = false;                 ///< ranks of others than the first gang were seen
  std::map<Rank, std::string> lines_;  ///< that are not complete
  std::map<Rank, int> positions_;      ///< where a rank's position is in the request
};

}  // namespace orrery

// store/wal_scan.hpp - tells damage of a write-ahead log of SQLite from a tail that a crash cut
// off.
//
// SQLite itself stops at the first frame whose checksum does not hold, takes everything before it
// and says nothing: a byte that was flipped in the middle of the log ends the history there. Before
// SQLite opens a database this looks at what lies behind such a frame. The form of the file is that
// of https://www.sqlite.org/fileformat2.html#walformat (format 3007000).
// A pure function of the bytes and one that reads them; any thread. Cost: one read of the log,
// which store/sqlite_store.cpp bounds at some tens of MiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/env.hpp"

namespace orrery {

/// Where a log stops being what was written.
struct WalBreak {
  std::uint64_t frame = 0;   ///< number of the frame from 1; 0: the head of the log
  std::uint64_t offset = 0;  ///< its first byte in the file
  /// Frames of a transaction after this place are whole, so the place was synced: it was damaged
  /// later. Without it the break may be the end of what was ever written.
  bool later_transaction = false;

  friend bool operator==(const WalBreak&, const WalBreak&) = default;
};

/// The first place at which the log does not hold; none: every frame of its present generation
/// holds, or there is no frame.
[[nodiscard]] std::optional<WalBreak> find_wal_break(std::string_view bytes);

/// The same of the file `path`, which a writer may be appending to; none where there is no file.
[[nodiscard]] StorageResult<std::optional<WalBreak>> scan_wal(const std::string& path);

}  // namespace orrery

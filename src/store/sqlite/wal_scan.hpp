// store/sqlite/wal_scan.hpp - distinguishes damage of an SQLite write-ahead log from a tail that a
// crash cut off.
//
// SQLite itself stops at the first frame with a wrong checksum, takes everything before it and
// reports nothing: one flipped byte in the middle of the log would end the history there. Before
// SQLite opens a database, this code checks what follows such a frame. The format of the file is
// that of https://www.sqlite.org/fileformat2.html#walformat (format 3007000).
// A pure function of the bytes and one that reads them; any thread. Cost: one read of the log,
// which store/sqlite/sqlite_store.cpp limits to some tens of MiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/env.hpp"

namespace orrery {

/// The place where a log differs from what was written.
struct WalBreak {
  std::uint64_t frame = 0;   ///< number of the frame from 1; 0: the head of the log
  std::uint64_t offset = 0;  ///< its first byte in the file
  /// Frames of a transaction after this place are whole, so the place was synced and damaged later.
  /// If false, the break may be the end of what was ever written.
  bool later_transaction = false;

  friend bool operator==(const WalBreak&, const WalBreak&) = default;
};

/// Returns the first place at which the log is not valid; none: every frame of its present
/// generation is valid, or there is no frame.
[[nodiscard]] std::optional<WalBreak> find_wal_break(std::string_view bytes);

/// Checks the file `path`, which a writer may be extending; none if the file does not exist.
[[nodiscard]] StorageResult<std::optional<WalBreak>> scan_wal(const std::string& path);

}  // namespace orrery

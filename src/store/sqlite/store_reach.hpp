// store/sqlite/store_reach.hpp - checks whether the database of a store has all that was
// acknowledged and is still the log of its cluster, and names an operator's commands if not.
//
//   DIR/moved  "moved to PLACE": the store is closed, its log was copied to this place
//
// Called by store/sqlite/sqlite_store.cpp before anything is written. Pure functions and one look
// at the write-ahead log and at the mark of a closed store; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/sqlite/high_water.hpp"
#include "store/sqlite/wal_scan.hpp"

namespace orrery {

/// Returns the commands to use after damage of the store in `directory`, as the end of a message.
[[nodiscard]] std::string repair_commands(const std::string& directory);

/// The files of a store that is not open yet.
struct StoreFiles {
  std::optional<HighWater> mark;      ///< none: the file does not exist
  std::optional<WalBreak> wal_break;  ///< where the write-ahead log breaks; none: it is whole
};

/// Errors: the mark is damaged; the database it belongs to is missing; the write-ahead log is
/// damaged before its end.
[[nodiscard]] StorageResult<StoreFiles> look_at_files(const std::string& directory);

/// The content of a database.
struct DatabaseReach {
  bool empty = false;   ///< it has no tables
  bool marked = false;  ///< a mark was once put beside it
  std::uint64_t newest = 0;
  std::uint64_t term = 0;
};

/// Errors: the mark is missing; the database lacks acknowledged batches, with their numbers and, if
/// known, the place in the write-ahead log.
[[nodiscard]] StorageStatus check_reach(const std::string& directory, const StoreFiles& files,
                                        const DatabaseReach& reach);

/// Closes the store in `directory`: its log goes on at `place`, a URL or a directory. Durable on
/// return.
[[nodiscard]] StorageStatus close_moved(const std::string& directory, const std::string& place);
/// Error kOther: the store is closed; the text names the place of its copy, and how to reopen it.
/// A backup file, and a directory without a store, are not closed.
[[nodiscard]] StorageStatus check_not_moved(const std::string& directory);

}  // namespace orrery

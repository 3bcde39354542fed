// store/sqlite/high_water.hpp - the newest acknowledged state of a store, kept outside of its
// database.
//
//   DIR/store/high_water  8 KiB of text: two records, at byte 0 and at byte 4096
//
// A record names the newest batch and the newest term that were acknowledged, the first job number
// that no acknowledged batch has given out, a count, and the XXH3 of all that. The two records are
// written in turn, so that a write cut short by a crash leaves the other one; the higher count is
// valid. The mark is raised after the database has a batch and before the batch is acknowledged, so
// a database that does not reach the mark has lost acknowledged batches.
// Made by store/sqlite/sqlite_store.cpp for the one process that writes; any process may read. One
// thread. Invariant: no field of the mark ever falls. Cost of a raise: one write and one sync of a
// file that does not grow, so it needs no space on a full disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

struct HighWater {
  std::uint64_t batch = 0;     ///< newest acknowledged batch; 0: none
  std::uint64_t term = 0;      ///< newest claimed term; 0: none
  std::uint64_t next_job = 0;  ///< job numbers below it may have been given out

  friend bool operator==(const HighWater&, const HighWater&) = default;
};

/// Returns the mark of the store in `directory`; none: it has no such file. Errors: of the file
/// system; both records are damaged, with file and offset.
[[nodiscard]] StorageResult<std::optional<HighWater>> read_high_water(const std::string& directory);

class HighWaterFile {
 public:
  static constexpr const char* kName = "high_water";

  /// Opens the existing file of `directory` and reads the mark.
  [[nodiscard]] static StorageResult<HighWaterFile> open(const std::string& directory);
  /// Creates or replaces the file, with this mark. Durable on return.
  [[nodiscard]] static StorageStatus put(const std::string& directory, const HighWater& mark);

  /// Raises each field of the mark to that of `reached`, where that is higher. Durable on return.
  [[nodiscard]] StorageStatus raise(const HighWater& reached);
  [[nodiscard]] const HighWater& mark() const { return mark_; }

 private:
  HighWaterFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  HighWater mark_;
  std::uint64_t count_ = 0;  ///< count of the newest record
};

}  // namespace orrery

// store/high_water.hpp - how far a store was acknowledged, kept outside of its database.
//
//   DIR/store/high_water  8 KiB of text: two records, at byte 0 and at byte 4096
//
// A record names the newest batch and the newest term that were acknowledged, the first job number
// that no acknowledged batch has given out, a count, and the XXH3 of all that. Records are written
// in turn, so that a write which a crash cuts short leaves the other one; the higher count holds.
// The mark is raised after the database has a batch and before the batch is acknowledged, so the
// database always reaches the mark: one that does not has lost what was acknowledged.
// Made by store/sqlite_store.cpp for the one process that writes; anybody may read. One thread.
// Invariant: no field of the mark ever falls. Cost of a raise: one write and one sync of a file
// that does not grow, so it needs no room on a full disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/file_descriptor.hpp"

namespace orrery {

struct HighWater {
  std::uint64_t batch = 0;     ///< newest that was acknowledged; 0: none
  std::uint64_t term = 0;      ///< newest that was claimed; 0: none
  std::uint64_t next_job = 0;  ///< job numbers below it may have been given out

  friend bool operator==(const HighWater&, const HighWater&) = default;
};

/// The mark of the store in `directory`; none: it has no such file. Errors: of the file system;
/// both records are damaged, with file and offset.
[[nodiscard]] StorageResult<std::optional<HighWater>> read_high_water(const std::string& directory);

class HighWaterFile {
 public:
  static constexpr const char* kName = "high_water";

  /// Opens the file of `directory`, which is there and was read as `mark`.
  [[nodiscard]] static StorageResult<HighWaterFile> open(const std::string& directory);
  /// Makes the file, or replaces it, with this mark. Durable when it returns.
  [[nodiscard]] static StorageStatus put(const std::string& directory, const HighWater& mark);

  /// Raises each field of the mark to that of `reached`, where it is higher. Durable when it
  /// returns.
  [[nodiscard]] StorageStatus raise(const HighWater& reached);
  [[nodiscard]] const HighWater& mark() const { return mark_; }

 private:
  HighWaterFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  HighWater mark_;
  std::uint64_t count_ = 0;  ///< of the newest record
};

}  // namespace orrery

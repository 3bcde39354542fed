// store/etcd/local_mark.hpp - the newest state of a log in etcd that this machine has claimed or
// written, kept in a file of its own (store/sqlite/high_water.hpp).
//
// Made by store/etcd/etcd_store.cpp for the one process that has the directory. Any thread.
// Invariant: no field falls. Cost: one sync of a small file for a claim or snapshot, and at most
// one a second for batches and beats.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/time.hpp"
#include "store/etcd_api/etcd_location.hpp"
#include "store/shared_store.hpp"
#include "store/sqlite/high_water.hpp"

namespace orrery {

class LocalMark {
 public:
  enum class Raise : std::uint8_t { kNow, kWhenDue };

  /// Opens the mark of an existing directory; creates it where it is missing.
  [[nodiscard]] static StorageResult<std::unique_ptr<LocalMark>> open(const std::string& directory);
  LocalMark(std::string directory, HighWaterFile file)
      : directory_(std::move(directory)), file_(std::move(file)), reached_(file_.mark()) {}
  /// Raises the file to what was noted last.
  ~LocalMark();
  LocalMark(const LocalMark&) = delete;
  LocalMark& operator=(const LocalMark&) = delete;

  /// Error kOther: the log at `location` lacks what the mark names; says how to go on without it.
  [[nodiscard]] StorageStatus check(const EtcdLocation& location, const WriterSeen& seen) const;
  [[nodiscard]] StorageStatus note(const HighWater& reached, Raise raise);
  /// Job numbers below it may have been given out; 0: none is known.
  [[nodiscard]] std::uint64_t next_job() const;

 private:
  std::string directory_;
  mutable std::mutex mutex_;  ///< guards all below
  HighWaterFile file_;
  HighWater reached_;
  Instant raised_at_;
};

}  // namespace orrery

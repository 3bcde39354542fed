// twin/replicas/replica_machine.hpp - what one controller's machine keeps when its process dies:
// files, the mark of the newest log that it has seen, and its archive.
//
// Owned by the Replica. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/env.hpp"
#include "store/memory/memory_store.hpp"

namespace orrery {

/// The files of a machine, in memory. Directories are not kept: every path may be written.
class ReplicaFiles final : public Storage {
 public:
  [[nodiscard]] StorageResult<std::string> read_file(const std::string& path,
                                                     std::size_t size_max) override;
  [[nodiscard]] StorageStatus write_file(const std::string& path, std::string_view bytes) override;
  [[nodiscard]] StorageResult<std::unique_ptr<File>> open(const std::string& path,
                                                          OpenMode mode) override;
  [[nodiscard]] StorageStatus rename(const RenamePaths& paths) override;
  [[nodiscard]] StorageStatus remove(const std::string& path) override;
  [[nodiscard]] StorageResult<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] StorageResult<std::uint64_t> free_bytes(const std::string&) override {
    return std::uint64_t{1} << 40;
  }
  [[nodiscard]] StorageStatus make_directories(const std::string&) override { return {}; }

 private:
  std::map<std::string, std::string> files_;
};

/// The newest state of the log that a machine has seen (store/etcd/local_mark.hpp).
struct ReplicaMark {
  std::uint64_t batch = 0;
  std::uint64_t term = 0;
  std::uint64_t next_job = 0;

  void raise(const ReplicaMark& other);
};

struct ReplicaMachine {
  std::size_t number = 0;
  ReplicaFiles files = {};
  ReplicaMark mark = {};    ///< in its file
  MemoryDisk archive = {};  ///< of jobs
};

/// The mark as a process knows it: it goes to the file at once or within a second.
class ReplicaMarkKeeper {
 public:
  enum class Raise : std::uint8_t { kNow, kWhenDue };

  explicit ReplicaMarkKeeper(ReplicaMachine& machine) : machine_(machine), reached_(machine.mark) {}

  /// Error kOther: a log that ends there lacks what the mark names.
  [[nodiscard]] StorageStatus check(std::uint64_t batch, std::uint64_t term) const;
  void note(const ReplicaMark& mark, Raise raise, Instant now);
  /// The process ends in an orderly way.
  void end() { machine_.mark.raise(reached_); }
  [[nodiscard]] std::uint64_t next_job() const { return reached_.next_job; }

 private:
  ReplicaMachine& machine_;
  ReplicaMark reached_;  ///< what the file has, and what it does not have yet
  Instant raised_;
};

}  // namespace orrery

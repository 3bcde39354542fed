// base/system/real_storage.hpp - the Storage of the real Env: POSIX files, fsync and rename.
//
// A value; RealFile is used by one thread. Files are made with mode 0600, directories with 0700.
// Where a file system cannot sync a directory (EINVAL), the name counts as durable. A process under
// a limit on file size ignores SIGXFSZ, or the kernel ends it before an error can be seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

/// What a write outlives once it has returned.
enum class Durability : std::uint8_t {
  kDurable,    ///< the loss of power
  kUntilBoot,  ///< the process: for what means nothing after a boot, and must not wait for a disk
};

class RealFile final : public File {
 public:
  struct State {
    FileDescriptor fd;
    std::string path;  ///< for messages
    std::uint64_t size = 0;
    Durability durability = Durability::kDurable;
  };
  explicit RealFile(State state) : state_(std::move(state)) {}

  [[nodiscard]] StorageStatus append(std::string_view bytes) override;
  [[nodiscard]] StorageResult<std::string> read(ByteRange range) const override;
  [[nodiscard]] StorageStatus truncate(std::uint64_t size) override;
  [[nodiscard]] StorageStatus sync() override;
  [[nodiscard]] std::uint64_t size() const override { return state_.size; }

 private:
  [[nodiscard]] StorageStatus usable() const;

  State state_;
  std::string broken_;  ///< why nothing can be written any more; empty while it can
};

class RealStorage final : public Storage {
 public:
  explicit RealStorage(Durability durability = Durability::kDurable) : durability_(durability) {}

  [[nodiscard]] StorageResult<std::unique_ptr<File>> open(const std::string& path,
                                                          OpenMode mode) override;
  [[nodiscard]] StorageResult<std::string> read_file(const std::string& path,
                                                     std::size_t size_max) override;
  [[nodiscard]] StorageStatus write_file(const std::string& path, std::string_view bytes) override;
  [[nodiscard]] StorageResult<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] StorageStatus remove(const std::string& path) override;
  [[nodiscard]] StorageStatus rename(const RenamePaths& paths) override;
  [[nodiscard]] StorageStatus make_directories(const std::string& path) override;
  [[nodiscard]] StorageResult<std::uint64_t> free_bytes(const std::string& path) override;

 private:
  Durability durability_;
};

}  // namespace orrery

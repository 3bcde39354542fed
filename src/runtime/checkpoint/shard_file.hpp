// runtime/checkpoint/shard_file.hpp - shards on disk: written whole and durable, read in part and
// checked.
//
// ShardReader is made for one file, holds one block of it, and is used by one thread; what it gives
// has been checked against the checksums of the header. Cost: reading whole blocks of 1 MiB.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "runtime/checkpoint/durable_file.hpp"
#include "runtime/checkpoint/snapshot_buffer.hpp"

namespace orrery {

/// What a manifest has of a shard.
struct ShardRecord {
  std::string file;  ///< its name in the directory of the manifest
  std::uint64_t bytes = 0;
  std::string checksum;  ///< of its header, as checksum_text() writes it
  std::vector<TensorPiece> pieces;

  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

struct WrittenShard {
  ShardRecord record;
  WriteMethod method = WriteMethod::kDirect;
};

/// Writes a snapshot as DIRECTORY/<name of the shard>; durable when it returns. After an error the
/// file does not exist. `method` is the best to try.
[[nodiscard]] Result<WrittenShard> write_shard(const std::string& directory,
                                               const SnapshotBuffer& snapshot,
                                               WriteMethod method = WriteMethod::kDirect);

class ShardReader {
 public:
  /// Reads and checks the header. Errors name the file.
  [[nodiscard]] static Result<ShardReader> open(const std::string& path);

  [[nodiscard]] const ShardIndex& index() const { return index_; }

  /// The bytes of the payload from `offset`. Precondition: they lie within it. Error: names the
  /// file, where in it, and a tensor that is hurt.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out);

  /// Reads and checks everything.
  [[nodiscard]] Status verify();

 private:
  ShardReader(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  [[nodiscard]] Status read_block(std::uint64_t block, std::span<char> out) const;
  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t block) const;

  std::string path_;
  FileDescriptor fd_;
  ShardIndex index_;
  std::string held_;  ///< the block read last in part; pieces are small beside blocks
  std::uint64_t held_block_ = 0;
};

}  // namespace orrery

// runtime/shards/shard_file.hpp - shards on disk: written as a whole and durably, read in parts
// and checked.
//
// A ShardReader belongs to one file, holds one block of it, and is used by one thread; all data it
// returns has been checked against the checksums of the header. Cost: reads whole blocks of 1 MiB.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/system/file_descriptor.hpp"
#include "runtime/checkpoint/durable_file.hpp"
#include "runtime/checkpoint/snapshot_buffer.hpp"

namespace orrery {

/// What a manifest stores about a shard.
struct ShardRecord {
  std::string file;  ///< file name in the directory of the manifest
  std::uint64_t bytes = 0;
  std::string checksum;  ///< checksum of its header, as checksum_text() writes it
  std::vector<TensorPiece> pieces;

  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

struct WrittenShard {
  ShardRecord record;
  WriteMethod method = WriteMethod::kDirect;
};

/// Writes a snapshot as DIRECTORY/<name of the shard>; the file is durable when the function
/// returns. After an error nothing new is left. An existing shard is an error, because shards are
/// never overwritten. `method` is the best method to try.
[[nodiscard]] Result<WrittenShard> write_shard(const std::string& directory,
                                               const SnapshotBuffer& snapshot,
                                               WriteMethod method = WriteMethod::kDirect);

class ShardReader {
 public:
  /// Reads and checks the header. Errors name the file.
  [[nodiscard]] static Result<ShardReader> open(const std::string& path);

  [[nodiscard]] const ShardIndex& index() const { return index_; }

  /// Reads the bytes of the payload from `offset` on. Precondition: they lie within it. Errors name
  /// the file, the place in it, and a damaged tensor.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out);

  /// Reads and checks the whole shard.
  [[nodiscard]] Status verify();

 private:
  ShardReader(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  [[nodiscard]] Status read_block(std::uint64_t block, std::span<char> out) const;
  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t block) const;

  std::string path_;
  FileDescriptor fd_;
  ShardIndex index_;
  std::string held_;  ///< the last block read in part; pieces are smaller than blocks
  std::uint64_t held_block_ = 0;
};

}  // namespace orrery

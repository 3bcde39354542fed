// runtime/checkpoint/snapshot_buffer.hpp - a rank's part of the state as it was at one step
// boundary, in memory of its own.
//
// Training waits only for take(): one copy into pages that are already mapped. After that the
// trainer changes its tensors while a thread writes the snapshot. Made once per rank and reused.
// Not thread-safe by itself: the caller of take() must know that the last snapshot is no longer
// read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/shards/shard_header.hpp"

namespace orrery {

class SnapshotBuffer {
 public:
  /// Allocates the memory before the first snapshot needs it. Error: there is not enough memory.
  [[nodiscard]] Status reserve(std::uint64_t payload_bytes) {
    return memory_.reserve(payload_bytes);
  }

  /// Copies the pieces. Errors: those of check_shard_name() and check_piece(), and a piece with the
  /// wrong number of bytes; nothing is copied then. Cost: a memcpy, and the first time that of
  /// reserve().
  [[nodiscard]] Status take(const ShardName& name, std::span<const PieceView> pieces);

  [[nodiscard]] const ShardHeader& header() const { return header_; }
  /// The copied bytes; page-aligned.
  [[nodiscard]] std::string_view payload() const { return {memory_.data(), payload_bytes_}; }

 private:
  PrefaultedMemory memory_;
  ShardHeader header_;
  std::uint64_t payload_bytes_ = 0;
};

/// Returns the header of a snapshot. A shard is the header's bytes followed by the payload. Cost: a
/// checksum of all bytes, about 0.1 s per GiB.
[[nodiscard]] Result<HeaderSeal> seal(const SnapshotBuffer& snapshot);

/// A shard in memory.
struct ParsedShard {
  ShardIndex index;
  std::vector<PieceView> pieces;  ///< point into the memory that was parsed
};

/// Parses a whole shard. Errors: those of reading a file, under the name `file`. Cost: that of
/// seal().
[[nodiscard]] Result<ParsedShard> parse_shard(std::string_view bytes, const std::string& file);

}  // namespace orrery

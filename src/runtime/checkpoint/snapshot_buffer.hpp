// runtime/checkpoint/snapshot_buffer.hpp - a rank's part of the state as it was at one step
// boundary, in memory of its own.
//
// take() is all that training waits for: one copy into pages that are there already. From then on
// the trainer goes on changing its tensors while a thread writes the snapshot. Made once a rank and
// used again. Not thread-safe by itself: who takes must know that the last snapshot is no longer
// read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/shard_header.hpp"

namespace orrery {

class SnapshotBuffer {
 public:
  /// Gets the memory before the first snapshot needs it. Error: there is none.
  [[nodiscard]] Status reserve(std::uint64_t payload_bytes) {
    return memory_.reserve(payload_bytes);
  }

  /// Copies the pieces. Errors: what check_shard_name() and check_piece() say, bytes that are not
  /// its own in number; nothing is copied then. Cost: a memcpy, and the first time that of
  /// reserve().
  [[nodiscard]] Status take(const ShardName& name, std::span<const PieceView> pieces);

  [[nodiscard]] const ShardHeader& header() const { return header_; }
  /// Page-aligned.
  [[nodiscard]] std::string_view payload() const { return {memory_.data(), payload_bytes_}; }

 private:
  PrefaultedMemory memory_;
  ShardHeader header_;
  std::uint64_t payload_bytes_ = 0;
};

/// The header of a snapshot. A shard is its bytes and the payload's behind them. Cost: a checksum
/// of all, about 0.1 s a GiB.
[[nodiscard]] Result<HeaderSeal> seal(const SnapshotBuffer& snapshot);

/// A shard in memory.
struct ParsedShard {
  ShardIndex index;
  std::vector<PieceView> pieces;  ///< in the memory it was read from
};

/// Reads a whole shard. Errors: as of a file, under the name `file`. Cost as of seal().
[[nodiscard]] Result<ParsedShard> parse_shard(std::string_view bytes, const std::string& file);

}  // namespace orrery

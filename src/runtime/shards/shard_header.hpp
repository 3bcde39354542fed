// runtime/shards/shard_header.hpp - the header of a shard file: what the shard holds, and
// checksums to verify it.
//
// A shard is one writer's part of a checkpoint:
//
//   0    8 bytes   magic
//   8    4 bytes   version, 1
//   12   4 bytes   bytes of the text
//   16   8 bytes   bytes of the payload, a multiple of 4096
//   24             text: JSON; job, attempt, epoch, step, rank, world and the pieces
//        8 x n     the block_checksum (base/format/checksum.hpp) of each 1 MiB of the payload
//                  zeros, up to
//   h-8  8 bytes   the checksum of all bytes before; h is a multiple of 4096
//   h              payload: the pieces, each at a multiple of 64, zeros between
//
// Numbers are little endian. Every byte is covered by a checksum, and the checksum of the header
// covers all others, so it identifies the content of the whole file. The checksums are the
// project's own, not CRC32C: they are wider, use the same code on every CPU, and block_checksum()
// is faster than a loop of the CRC instruction. Plain values. Cost: O(pieces + blocks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/checkpoint/prefaulted_memory.hpp"
#include "runtime/shards/tensor_piece.hpp"

namespace orrery {

/// Bytes that one checksum covers.
inline constexpr std::uint64_t kShardBlockBytes = std::uint64_t{1} << 20;

/// What a shard holds. Invariant of a header that was read: the pieces lie within the payload.
struct ShardHeader {
  ShardName name;
  std::vector<TensorPiece> pieces;

  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

/// Sets the offset of each piece, in order; returns the bytes of the payload.
std::uint64_t lay_out_payload(std::vector<TensorPiece>& pieces);

/// Number of blocks of a payload; the last may be short.
[[nodiscard]] constexpr std::uint64_t blocks_of(std::uint64_t payload_bytes) {
  return (payload_bytes + kShardBlockBytes - 1) / kShardBlockBytes;
}

/// The header of a shard that is being written: its size is known before its checksums are.
class HeaderSeal {
 public:
  /// Error: the text of the header is larger than Document::kSizeMax, or the system has no memory.
  [[nodiscard]] static Result<HeaderSeal> begin(const ShardHeader& header,
                                                std::uint64_t payload_bytes);

  /// Bytes of the header in the file; fixed from begin() on.
  [[nodiscard]] std::uint64_t size() const { return memory_.size(); }
  /// Records the checksum of a block. Must be called once for each block.
  void seal_block(std::uint64_t index, std::string_view block);
  /// Returns the header, once all blocks are sealed; page-aligned, valid as long as this object.
  [[nodiscard]] std::string_view finish();
  /// The checksum of the header. Precondition: finish() was called.
  [[nodiscard]] std::uint64_t checksum_of_all() const;

 private:
  PrefaultedMemory memory_;
  std::uint64_t blocks_begin_ = 0;
};

/// A header as read from the front of a shard.
struct ShardIndex {
  ShardHeader header;
  std::uint64_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::vector<std::uint64_t> block_checksums;
  std::uint64_t checksum = 0;  ///< checksum of the header, and so of the whole shard
};

/// Size of the preamble, which is read first and gives the length of the header.
inline constexpr std::uint64_t kShardPreambleBytes = 24;

/// Returns the bytes of the header of a shard of `shard_bytes` in total. Errors: not a shard,
/// another version, another size; they name `file`.
[[nodiscard]] Result<std::uint64_t> shard_header_bytes(std::string_view preamble,
                                                       std::uint64_t shard_bytes,
                                                       const std::string& file);

/// Parses the whole header, of exactly as many bytes as shard_header_bytes() returned.
[[nodiscard]] Result<ShardIndex> parse_shard_header(std::string_view bytes,
                                                    const std::string& file);

/// Checks that `bytes` are block `block` of the payload as it was written. The error names the
/// file, the place in it, and the first damaged tensor.
[[nodiscard]] Status check_block(const ShardIndex& index, std::uint64_t block,
                                 std::string_view bytes, const std::string& file);

/// Returns the checksum as 16 hexadecimal digits.
[[nodiscard]] std::string checksum_text(std::uint64_t checksum);

}  // namespace orrery

// runtime/checkpoint/shard_header.hpp - the begin of a shard file: what it holds, and how to tell
// that it still does.
//
// A shard is one writer's part of a checkpoint:
//
//   0    8 bytes   magic
//   8    4 bytes   version, 1
//   12   4 bytes   bytes of the text
//   16   8 bytes   bytes of the payload, a multiple of 4096
//   24             text: JSON; job, attempt, epoch, step, rank, world and the pieces
//        8 x n     the block_checksum (base/checksum.hpp) of each 1 MiB of the payload
//                  zeros, up to
//   h-8  8 bytes   the checksum of all bytes before; h is a multiple of 4096
//   h              payload: the pieces, each at a multiple of 64, zeros between
//
// Numbers are little endian. Every byte is under a checksum, and that of the header is under all of
// them, so it names the content of the whole file. The checksums are the project's own, not CRC32C:
// wider, the same code on every CPU, and block_checksum() outruns a loop of the CRC instruction.
// Values. Cost: O(pieces + blocks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/checkpoint/prefaulted_memory.hpp"
#include "runtime/checkpoint/tensor_piece.hpp"

namespace orrery {

/// Bytes under one checksum.
inline constexpr std::uint64_t kShardBlockBytes = std::uint64_t{1} << 20;

/// What a shard holds. Invariant of what was read: the pieces lie within the payload.
struct ShardHeader {
  ShardName name;
  std::vector<TensorPiece> pieces;

  friend bool operator==(const ShardHeader&, const ShardHeader&) = default;
};

/// Gives each piece its offset, in order; returns the bytes of the payload.
std::uint64_t lay_out_payload(std::vector<TensorPiece>& pieces);

/// Blocks of a payload; the last may be short.
[[nodiscard]] constexpr std::uint64_t blocks_of(std::uint64_t payload_bytes) {
  return (payload_bytes + kShardBlockBytes - 1) / kShardBlockBytes;
}

/// The header of a shard that is being written: its size is known before its checksums are.
class HeaderSeal {
 public:
  /// Error: the text of the header is larger than Document::kSizeMax, or the system has no memory.
  [[nodiscard]] static Result<HeaderSeal> begin(const ShardHeader& header,
                                                std::uint64_t payload_bytes);

  /// Bytes of the header in the file, from now on.
  [[nodiscard]] std::uint64_t size() const { return memory_.size(); }
  /// Notes the checksum of a block. Each must be noted once.
  void seal_block(std::uint64_t index, std::string_view block);
  /// The header, once all blocks are sealed; page-aligned, alive as long as this.
  [[nodiscard]] std::string_view finish();
  /// The checksum of the header. Precondition: finish() was called.
  [[nodiscard]] std::uint64_t checksum_of_all() const;

 private:
  PrefaultedMemory memory_;
  std::uint64_t blocks_begin_ = 0;
};

/// A header as it was found in front of a payload.
struct ShardIndex {
  ShardHeader header;
  std::uint64_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::vector<std::uint64_t> block_checksums;
  std::uint64_t checksum = 0;  ///< of the header, and by it of everything
};

/// What to read first: the preamble, which says how long the header is.
inline constexpr std::uint64_t kShardPreambleBytes = 24;

/// Bytes of the header of a shard of `shard_bytes` in all. Errors: no shard, another version, not
/// of this size; they name `file`.
[[nodiscard]] Result<std::uint64_t> shard_header_bytes(std::string_view preamble,
                                                       std::uint64_t shard_bytes,
                                                       const std::string& file);

/// Reads the whole header, of exactly as many bytes as shard_header_bytes() said.
[[nodiscard]] Result<ShardIndex> parse_shard_header(std::string_view bytes,
                                                    const std::string& file);

/// Whether `bytes` are block `block` of the payload as it was written. Error: names the file, where
/// in it, and the first tensor that is hurt.
[[nodiscard]] Status check_block(const ShardIndex& index, std::uint64_t block,
                                 std::string_view bytes, const std::string& file);

/// 16 hexadecimal digits.
[[nodiscard]] std::string checksum_text(std::uint64_t checksum);

}  // namespace orrery

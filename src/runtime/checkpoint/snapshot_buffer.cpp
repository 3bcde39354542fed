#include "runtime/checkpoint/snapshot_buffer.hpp"

#include <cstring>

#include "base/numbers/streaming_copy.hpp"

namespace orrery {
namespace {

Status check_view(const PieceView& view) {
  if (Status good = check_piece(view.piece); !good) return good;
  if (view.bytes.size() == view.piece.bytes()) return {};
  return input_error(
      {}, fmt::format("tensor \"{}\": expected {} bytes for elements [{}, {}), found "
                      "{}",
                      view.piece.tensor, view.piece.bytes(), view.piece.begin, view.piece.end,
                      view.bytes.size()));
}

}  // namespace

Status SnapshotBuffer::take(const ShardName& name, std::span<const PieceView> pieces) {
  if (Status good = check_shard_name(name); !good) return good;
  std::vector<TensorPiece> laid_out;
  laid_out.reserve(pieces.size());
  for (const PieceView& view : pieces) {
    if (Status good = check_view(view); !good) return good;
    laid_out.push_back(view.piece);
  }
  const std::uint64_t bytes = lay_out_payload(laid_out);
  if (Status reserved = memory_.reserve(bytes); !reserved) return reserved;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t begin = laid_out[i].offset;
    const std::span<const std::byte> from = pieces[i].bytes;
    // Clears remains of an earlier snapshot between the pieces, since the checksums cover these
    // bytes.
    std::memset(memory_.data() + end, 0, begin - end);
    streaming_copy(memory_.data() + begin, from.data(), from.size());
    end = begin + from.size();
  }
  if (end < bytes) std::memset(memory_.data() + end, 0, bytes - end);
  header_ = {name, std::move(laid_out)};
  payload_bytes_ = bytes;
  return {};
}

Result<HeaderSeal> seal(const SnapshotBuffer& snapshot) {
  const std::string_view payload = snapshot.payload();
  Result<HeaderSeal> header = HeaderSeal::begin(snapshot.header(), payload.size());
  if (!header) return header;
  for (std::uint64_t block = 0; block < blocks_of(payload.size()); ++block) {
    header->seal_block(block, payload.substr(block * kShardBlockBytes, kShardBlockBytes));
  }
  static_cast<void>(header->finish());
  return header;
}

Result<ParsedShard> parse_shard(std::string_view bytes, const std::string& file) {
  Result<std::uint64_t> header_bytes = shard_header_bytes(bytes, bytes.size(), file);
  if (!header_bytes) return forward_error(header_bytes);
  Result<ShardIndex> index = parse_shard_header(bytes.substr(0, *header_bytes), file);
  if (!index) return forward_error(index);
  const std::string_view payload = bytes.substr(*header_bytes);
  for (std::uint64_t block = 0; block < index->block_checksums.size(); ++block) {
    const std::string_view part = payload.substr(block * kShardBlockBytes, kShardBlockBytes);
    if (Status good = check_block(*index, block, part, file); !good) return forward_error(good);
  }
  ParsedShard parsed{*std::move(index), {}};
  parsed.pieces.reserve(parsed.index.header.pieces.size());
  for (const TensorPiece& piece : parsed.index.header.pieces) {
    const std::string_view part = payload.substr(piece.offset, piece.bytes());
    parsed.pieces.push_back({piece, std::as_bytes(std::span(part))});
  }
  return parsed;
}

}  // namespace orrery

#include "runtime/shards/shard_header.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/field_writer.hpp"
#include "base/format/little_endian.hpp"

namespace orrery {

template <class Visitor, SameStruct<ShardHeader> Self>
void describe(Visitor& visitor, Self& header) {
  describe_id(visitor, header.name.id);
  visitor.required("rank", header.name.rank);
  visitor.required("world", header.name.world);
  visitor.required("pieces", header.pieces);
}

namespace {

constexpr std::string_view kMagic("\x89OrCk\r\n\x1a", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kPieceAlignment = 64;
constexpr std::uint64_t kPayloadMax = std::uint64_t{1} << 53;

struct Preamble {
  std::uint32_t text_bytes = 0;
  std::uint64_t payload_bytes = 0;

  [[nodiscard]] std::uint64_t blocks_begin() const { return kShardPreambleBytes + text_bytes; }
  [[nodiscard]] std::uint64_t header_bytes() const {
    constexpr std::uint64_t kWord = sizeof(std::uint64_t);
    return aligned_bytes(blocks_begin() + kWord * blocks_of(payload_bytes) + kWord);
  }
};

Result<Preamble> read_preamble(std::string_view bytes, const std::string& file) {
  if (bytes.size() < kShardPreambleBytes || !bytes.starts_with(kMagic)) {
    return input_error({file}, "expected a shard of a checkpoint, found something else");
  }
  const auto version = load_little_endian<std::uint32_t>(bytes.data() + 8);
  if (version != kVersion) {
    return input_error({file}, fmt::format("expected version {} of the format of shards, found {}",
                                           kVersion, version));
  }
  const Preamble read{load_little_endian<std::uint32_t>(bytes.data() + 12),
                      load_little_endian<std::uint64_t>(bytes.data() + 16)};
  if (read.text_bytes > Document::kSizeMax || read.payload_bytes > kPayloadMax ||
      read.payload_bytes % PrefaultedMemory::kAlignment != 0) {
    return input_error({file},
                       fmt::format("expected a header of at most {} bytes and a payload of "
                                   "whole pages, found {} and {} bytes",
                                   Document::kSizeMax, read.text_bytes, read.payload_bytes));
  }
  return read;
}

Status check_header(const ShardHeader& header, std::uint64_t payload_bytes) {
  if (Status good = check_shard_name(header.name); !good) return good;
  for (const TensorPiece& piece : header.pieces) {
    if (Status good = check_piece(piece); !good) return good;
    if (piece.offset > payload_bytes || piece.bytes() > payload_bytes - piece.offset) {
      return input_error({}, fmt::format("tensor \"{}\": expected a place within the {} bytes of "
                                         "the payload, found {} bytes at {}",
                                         piece.tensor, payload_bytes, piece.bytes(), piece.offset));
    }
  }
  return {};
}

/// Returns the first tensor with a byte in [begin, end), worded for a message.
std::string tensor_at(const ShardIndex& index, std::uint64_t begin, std::uint64_t end) {
  for (const TensorPiece& piece : index.header.pieces) {
    if (piece.offset >= end || piece.offset + piece.bytes() <= begin) continue;
    const std::uint64_t skipped = begin > piece.offset ? begin - piece.offset : 0;
    return fmt::format("tensor \"{}\" from element {}", piece.tensor,
                       piece.begin + skipped / bytes_of(piece.type));
  }
  return "no tensor";
}

}  // namespace

std::uint64_t lay_out_payload(std::vector<TensorPiece>& pieces) {
  std::uint64_t end = 0;
  for (TensorPiece& piece : pieces) {
    piece.offset = (end + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
    end = piece.offset + piece.bytes();
  }
  return aligned_bytes(end);
}

Result<HeaderSeal> HeaderSeal::begin(const ShardHeader& header, std::uint64_t payload_bytes) {
  const std::string text = to_json(header).dump();
  if (text.size() > Document::kSizeMax) {
    return infeasible(fmt::format("a shard of {} pieces has a header of {} bytes; at most {}",
                                  header.pieces.size(), text.size(), Document::kSizeMax));
  }
  const Preamble preamble{static_cast<std::uint32_t>(text.size()), payload_bytes};
  HeaderSeal seal;
  if (Status reserved = seal.memory_.reserve(preamble.header_bytes()); !reserved) {
    return forward_error(reserved);
  }
  char* const to = seal.memory_.data();
  kMagic.copy(to, kMagic.size());
  store_little_endian(kVersion, to + 8);
  store_little_endian(preamble.text_bytes, to + 12);
  store_little_endian(preamble.payload_bytes, to + 16);
  text.copy(to + kShardPreambleBytes, text.size());
  seal.blocks_begin_ = preamble.blocks_begin();
  return seal;
}

void HeaderSeal::seal_block(std::uint64_t index, std::string_view block) {
  const std::uint64_t at = blocks_begin_ + sizeof(std::uint64_t) * index;
  ORRERY_ASSERT(at + 2 * sizeof(std::uint64_t) <= size(), "a block of this payload");
  store_little_endian(block_checksum(block), memory_.data() + at);
}

std::string_view HeaderSeal::finish() {
  const std::string_view all(memory_.data(), memory_.size());
  const std::string_view before = all.substr(0, all.size() - sizeof(std::uint64_t));
  store_little_endian(checksum(before, 0), memory_.data() + before.size());
  return all;
}

std::uint64_t HeaderSeal::checksum_of_all() const {
  return load_little_endian<std::uint64_t>(memory_.data() + size() - sizeof(std::uint64_t));
}

Result<std::uint64_t> shard_header_bytes(std::string_view preamble, std::uint64_t shard_bytes,
                                         const std::string& file) {
  Result<Preamble> read = read_preamble(preamble, file);
  if (!read) return forward_error(read);
  const std::uint64_t header_bytes = read->header_bytes();
  if (header_bytes + read->payload_bytes != shard_bytes) {
    return input_error({file}, fmt::format("expected {} bytes, a header and its payload, found {}",
                                           header_bytes + read->payload_bytes, shard_bytes));
  }
  return header_bytes;
}

Result<ShardIndex> parse_shard_header(std::string_view bytes, const std::string& file) {
  Result<Preamble> preamble = read_preamble(bytes, file);
  if (!preamble) return forward_error(preamble);
  ShardIndex index;
  index.header_bytes = preamble->header_bytes();
  index.payload_bytes = preamble->payload_bytes;
  if (bytes.size() != index.header_bytes) {
    return input_error({file}, fmt::format("expected a header of {} bytes, found {}",
                                           index.header_bytes, bytes.size()));
  }
  const std::string_view before = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  index.checksum = load_little_endian<std::uint64_t>(before.data() + before.size());
  if (index.checksum != checksum(before, 0)) {
    return input_error({file}, "its header is not what was written: the checksum is of others");
  }
  Result<Document> text =
      Document::parse(bytes.substr(kShardPreambleBytes, preamble->text_bytes), file);
  if (!text) return forward_error(text);
  if (Status read = read_struct(text->root(), index.header, {}); !read) return forward_error(read);
  if (Status good = check_header(index.header, index.payload_bytes); !good) {
    return input_error({file}, std::move(good.error().message));
  }
  index.block_checksums.resize(blocks_of(index.payload_bytes));
  const char* from = bytes.data() + preamble->blocks_begin();
  for (std::uint64_t& block : index.block_checksums) {
    block = load_little_endian<std::uint64_t>(from);
    from += sizeof block;
  }
  return index;
}

Status check_block(const ShardIndex& index, std::uint64_t block, std::string_view bytes,
                   const std::string& file) {
  if (block_checksum(bytes) == index.block_checksums.at(block)) return {};
  const std::uint64_t begin = block * kShardBlockBytes;
  const std::uint64_t end = std::min(begin + kShardBlockBytes, index.payload_bytes);
  return input_error({file}, fmt::format("bytes {} to {} are not what was written; there lies {}",
                                         index.header_bytes + begin, index.header_bytes + end,
                                         tensor_at(index, begin, end)));
}

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace orrery

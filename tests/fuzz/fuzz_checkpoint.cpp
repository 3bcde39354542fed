// tests/fuzz/fuzz_checkpoint.cpp - any bytes as the text before saved tensors: the header of a
// shard, a manifest, the header of a safetensors file. What is read is written and read again as
// the same. The first byte picks the kind.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "runtime/shards/safetensors.hpp"

namespace orrery {
namespace {

void check_shard(std::string_view bytes) {
  const Result<std::uint64_t> header_bytes = shard_header_bytes(bytes, bytes.size(), "any");
  if (!header_bytes) {
    ORRERY_ASSERT(header_bytes.error().text().starts_with("any: "), "a refusal says where");
    return;
  }
  const Result<ParsedShard> shard = parse_shard(bytes, "any");
  if (!shard) {
    ORRERY_ASSERT(shard.error().text().starts_with("any:"), "a refusal says where");
    return;
  }
  for (const PieceView& view : shard->pieces) {
    ORRERY_ASSERT(view.bytes.size() == view.piece.bytes(), "a piece has its bytes");
  }
  SnapshotBuffer again;
  const Status taken = again.take(shard->index.header.name, shard->pieces);
  ORRERY_ASSERT(taken.has_value(), "what was read can be written");
  Result<HeaderSeal> header = seal(again);
  ORRERY_ASSERT(header.has_value(), "what was read can be sealed");
  const std::string whole = std::string(header->finish()) + std::string(again.payload());
  const Result<ParsedShard> read = parse_shard(whole, "again");
  ORRERY_ASSERT(read.has_value(), "what was written can be read");
  ORRERY_ASSERT(read->index.header.name == shard->index.header.name, "and says the same");
}

/// A shard whose frame and checksums are good around a text that may be anything.
void check_framed_shard(std::string_view text) {
  constexpr std::size_t kPage = 4096;
  const std::string payload(kPage, 'x');
  const auto header_bytes = aligned_bytes(kShardPreambleBytes + text.size() + 2 * sizeof(kPage));
  std::string bytes("\x89OrCk\r\n\x1a\x01\0\0\0", 12);
  bytes.resize(kShardPreambleBytes);
  store_little_endian(static_cast<std::uint32_t>(text.size()), bytes.data() + 12);
  store_little_endian(std::uint64_t{kPage}, bytes.data() + 16);
  bytes += text;
  bytes.resize(header_bytes);
  store_little_endian(block_checksum(payload), bytes.data() + kShardPreambleBytes + text.size());
  const std::string_view before = std::string_view(bytes).substr(0, header_bytes - sizeof(kPage));
  store_little_endian(checksum(before, 0), bytes.data() + before.size());
  check_shard(bytes + payload);
}

void check_manifest(std::string_view text) {
  const Result<Manifest> manifest = parse_manifest(text, "any");
  if (!manifest) {
    ORRERY_ASSERT(manifest.error().text().starts_with("any:"), "a refusal says where");
    return;
  }
  const Result<std::string> again = manifest_text(*manifest);
  if (!again) return;  // a text in another form may be too long now
  const Result<Manifest> read = parse_manifest(*again, "again");
  ORRERY_ASSERT(read.has_value() && *read == *manifest, "what was written is read the same");
}

/// A manifest whose checksum is good.
void check_framed_manifest(std::string_view text) {
  check_manifest(fmt::format("{{\"checksum\": \"{}\",\n\"manifest\": {}}}\n",
                             checksum_text(checksum(text, 0)), text));
}

void check_safetensors(std::string_view header) {
  // The size of the data varies, so that some headers fit theirs.
  const std::uint64_t data_bytes = header.size() / 8;
  const auto entries = parse_safetensors_header(header, data_bytes, "any");
  if (!entries) {
    ORRERY_ASSERT(entries.error().text().starts_with("any:"), "a refusal says where");
    return;
  }
  std::vector<TensorInfo> tensors;
  tensors.reserve(entries->size());
  for (const SafetensorsEntry& entry : *entries) tensors.push_back(entry.info);
  const SafetensorsHeader again = safetensors_header(tensors, {});
  ORRERY_ASSERT(again.data_bytes == data_bytes, "the data are as long as they were");
  const auto read =
      parse_safetensors_header(std::string_view(again.bytes).substr(8), data_bytes, "again");
  ORRERY_ASSERT(read.has_value() && read->size() == tensors.size(), "what was written is read");
}

void check_as(std::uint8_t as, std::string_view bytes) {
  switch (as % 5) {
    case 0:
      return check_shard(bytes);
    case 1:
      return check_framed_shard(bytes);
    case 2:
      return check_manifest(bytes);
    case 3:
      return check_framed_manifest(bytes);
    default:
      return check_safetensors(bytes);
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.empty()) orrery::check_as(data[0], bytes.substr(1));
  return 0;
}

#include "runtime/shards/shard_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/assert.hpp"
#include "runtime/checkpoint/exact_read.hpp"

namespace orrery {

Result<WrittenShard> write_shard(const std::string& directory, const SnapshotBuffer& snapshot,
                                 WriteMethod method) {
  const std::string_view payload = snapshot.payload();
  Result<HeaderSeal> header = HeaderSeal::begin(snapshot.header(), payload.size());
  if (!header) return forward_error(header);
  const std::string name = snapshot.header().name.file();
  const std::uint64_t bytes = header->size() + payload.size();
  Result<DurableFile> file =
      DurableFile::create({.path = directory + "/" + name, .bytes = bytes, .method = method});
  if (!file) return forward_error(file);
  // While the checksum of one block is computed, earlier blocks are being written.
  for (std::uint64_t block = 0; block < blocks_of(payload.size()); ++block) {
    const std::uint64_t begin = block * kShardBlockBytes;
    const std::string_view part = payload.substr(begin, kShardBlockBytes);
    header->seal_block(block, part);
    if (Status sent = file->write(header->size() + begin, part); !sent) return forward_error(sent);
  }
  if (Status sent = file->write(0, header->finish()); !sent) return forward_error(sent);
  if (Status durable = file->finish(); !durable) return forward_error(durable);
  return WrittenShard{
      {name, bytes, checksum_text(header->checksum_of_all()), snapshot.header().pieces},
      file->method()};
}

Result<ShardReader> ShardReader::open(const std::string& path) {
  ShardReader reader(path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat found{};
  if (!reader.fd_.valid() || ::fstat(reader.fd_.get(), &found) != 0) {
    return environment_error(
        fmt::format("{}: cannot read: {}", path, std::generic_category().message(errno)));
  }
  const auto bytes = static_cast<std::uint64_t>(found.st_size);
  std::string header(std::min(bytes, kShardPreambleBytes), '\0');
  if (Status read = read_exactly(reader.fd_, {path, 0}, header); !read) return forward_error(read);
  Result<std::uint64_t> header_bytes = shard_header_bytes(header, bytes, path);
  if (!header_bytes) return forward_error(header_bytes);
  header.resize(*header_bytes);
  if (Status read = read_exactly(reader.fd_, {path, 0}, header); !read) return forward_error(read);
  Result<ShardIndex> index = parse_shard_header(header, path);
  if (!index) return forward_error(index);
  reader.index_ = *std::move(index);
  return reader;
}

Status ShardReader::read(std::uint64_t offset, std::span<std::byte> out) {
  ORRERY_ASSERT(offset + out.size() <= index_.payload_bytes, "a range of the payload");
  while (!out.empty()) {
    const std::uint64_t block = offset / kShardBlockBytes;
    const std::uint64_t skipped = offset % kShardBlockBytes;
    const std::uint64_t whole = block_bytes(block);
    const std::size_t taken = std::min<std::uint64_t>(whole - skipped, out.size());
    if (taken == whole) {
      const std::span<char> to(reinterpret_cast<char*>(out.data()), taken);
      if (Status good = read_block(block, to); !good) return good;
    } else {
      if (held_.empty() || held_block_ != block) {
        held_.resize(whole);
        Status good = read_block(block, held_);
        if (!good) {
          held_.clear();
          return good;
        }
        held_block_ = block;
      }
      std::memcpy(out.data(), held_.data() + skipped, taken);
    }
    offset += taken;
    out = out.subspan(taken);
  }
  return {};
}

Status ShardReader::verify() {
  held_.resize(kShardBlockBytes);
  Status good;
  for (std::uint64_t block = 0; good && block < index_.block_checksums.size(); ++block) {
    good = read_block(block, std::span(held_).first(block_bytes(block)));
  }
  held_.clear();
  return good;
}

std::uint64_t ShardReader::block_bytes(std::uint64_t block) const {
  return std::min(kShardBlockBytes, index_.payload_bytes - block * kShardBlockBytes);
}

Status ShardReader::read_block(std::uint64_t block, std::span<char> out) const {
  const std::uint64_t at = index_.header_bytes + block * kShardBlockBytes;
  if (Status filled = read_exactly(fd_, {path_, at}, out); !filled) return filled;
  return check_block(index_, block, {out.data(), out.size()}, path_);
}

}  // namespace orrery

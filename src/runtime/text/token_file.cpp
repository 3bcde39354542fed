#include "runtime/text/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {
namespace {

constexpr std::string_view kMagic = "orrtok1\n";
constexpr std::size_t kHeader = 80;
constexpr std::size_t kBlock = std::size_t{1} << 20;  ///< bytes per step of the chained checksum

struct Written {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

std::array<char, kHeader> header_of(const TokenFileKey& key, const Written& tokens) {
  std::array<char, kHeader> header{};
  std::ranges::copy(kMagic, header.begin());
  std::ranges::copy(key.digest, header.begin() + 8);
  const std::size_t width = token_width(key.kinds);
  store_little_endian(static_cast<std::uint32_t>(width), &header[40]);
  store_little_endian(static_cast<std::uint32_t>(key.kinds), &header[44]);
  store_little_endian(std::uint64_t{tokens.bytes / width}, &header[48]);
  store_little_endian(tokens.checksum, &header[56]);
  store_little_endian(checksum({header.data(), 72}, 0), &header[72]);
  return header;
}

std::uint64_t checksum_of_blocks(std::span<const char> bytes) {
  std::uint64_t sum = 0;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kBlock);
    sum = checksum({bytes.data(), size}, sum);
    bytes = bytes.subspan(size);
  }
  return sum;
}

tl::unexpected<Error> failed(int cause) {
  return environment_error(std::generic_category().message(cause));
}

}  // namespace

Result<TokenArray> open_token_file(const std::string& path, const TokenFileKey& key) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return failed(errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size < kHeader) return input_error({path}, "no file of tokens");
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return failed(errno);
  std::shared_ptr<const char> owner(static_cast<const char*>(mapped), [size](const char* bytes) {
    ::munmap(const_cast<char*>(bytes), size);
  });
  const std::span<const char> bytes(owner.get() + kHeader, size - kHeader);
  const std::size_t width = token_width(key.kinds);
  const std::array<char, kHeader> expected =
      header_of(key, {bytes.size(), checksum_of_blocks(bytes)});
  const bool whole = bytes.size() % width == 0;
  if (!whole || std::memcmp(expected.data(), owner.get(), kHeader) != 0) {
    return input_error({path}, "not the tokens of this text, or not as they were written");
  }
  TokenArray tokens(std::move(owner), bytes, width);
  if (tokens.highest() >= key.kinds) return input_error({path}, "some are no tokens");
  return tokens;
}

TokenFileWriter::TokenFileWriter(int descriptor, const TokenFileKey& key)
    : descriptor_(descriptor), key_(key), width_(token_width(key.kinds)) {}

Status TokenFileWriter::write(std::uint64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed(wrote < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Status TokenFileWriter::write_block(std::size_t size) {
  const std::string_view block = std::string_view(waiting_).substr(0, size);
  if (Status wrote = write(kHeader + written_, block); !wrote) return wrote;
  checksum_ = checksum(block, checksum_);
  written_ += size;
  waiting_.erase(0, size);
  return {};
}

Status TokenFileWriter::append(std::span<const std::int32_t> tokens) {
  constexpr std::size_t kAtOnce = kBlock / sizeof(std::int32_t);
  while (!tokens.empty()) {
    const auto some = tokens.first(std::min(tokens.size(), kAtOnce));
    pack_tokens(some, width_, waiting_);
    tokens = tokens.subspan(some.size());
    while (waiting_.size() >= kBlock) {
      if (Status wrote = write_block(kBlock); !wrote) return wrote;
    }
  }
  return {};
}

Status TokenFileWriter::finish() {
  if (!waiting_.empty()) {
    if (Status wrote = write_block(waiting_.size()); !wrote) return wrote;
  }
  // Syncs the tokens before the header, which marks the file as complete.
  if (::fdatasync(descriptor_) != 0) return failed(errno);
  const std::array<char, kHeader> header = header_of(key_, {written_, checksum_});
  if (Status wrote = write(0, {header.data(), header.size()}); !wrote) return wrote;
  if (::fdatasync(descriptor_) != 0) return failed(errno);
  return {};
}

}  // namespace orrery

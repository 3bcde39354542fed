#include "store/sqlite/wal_scan.hpp"

#include <bit>
#include <cstring>

#include "base/system/real_storage.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

constexpr std::size_t kHeadBytes = 32;
constexpr std::size_t kFrameHeadBytes = 24;
constexpr std::uint32_t kMagic = 0x377f0682;  // the lowest bit is the byte order of checksums
constexpr std::size_t kWalBytesMax = std::size_t{1} << 30;

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  }
  return value;
}

struct WalChecksum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;

  friend bool operator==(const WalChecksum&, const WalChecksum&) = default;
};

WalChecksum checksum_at(std::string_view bytes, std::size_t at) {
  return {big_endian(bytes, at), big_endian(bytes, at + 4)};
}

/// Reads the words of a log in the byte order of its checksums.
class WordOrder {
 public:
  explicit WordOrder(std::uint32_t magic)
      : swaps_(((magic & 1) != 0) != (std::endian::native == std::endian::big)) {}

  /// The "Checksum Algorithm" of the format. Precondition: a multiple of 8 bytes.
  [[nodiscard]] WalChecksum add(std::string_view bytes, WalChecksum before) const {
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      before.first += word(bytes, at) + before.second;
      before.second += word(bytes, at + 4) + before.first;
    }
    return before;
  }

 private:
  [[nodiscard]] std::uint32_t word(std::string_view bytes, std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return swaps_ ? __builtin_bswap32(value) : value;
  }

  bool swaps_;
};

/// A log with a valid head.
class WalFrames {
 public:
  explicit WalFrames(std::string_view bytes)
      : bytes_(bytes), order_(big_endian(bytes, 0)), frame_bytes_(page_bytes() + kFrameHeadBytes) {}

  [[nodiscard]] bool head_holds() const {
    const std::uint32_t page = big_endian(bytes_, 8);
    return (big_endian(bytes_, 0) & ~1U) == kMagic && page >= 512 && page <= 65536 &&
           std::has_single_bit(page) &&
           order_.add(bytes_.substr(0, 24), {}) == checksum_at(bytes_, 24);
  }
  [[nodiscard]] std::size_t count() const { return (bytes_.size() - kHeadBytes) / frame_bytes_; }
  [[nodiscard]] std::size_t offset(std::size_t frame) const {
    return kHeadBytes + frame * frame_bytes_;
  }
  /// Whether a frame is of the head's generation: frames of earlier ones have other salts.
  [[nodiscard]] bool is_present(std::size_t frame) const {
    return bytes_.substr(offset(frame) + 8, 8) == bytes_.substr(16, 8);
  }
  [[nodiscard]] bool commits(std::size_t frame) const {
    return big_endian(bytes_, offset(frame) + 4) != 0;
  }
  /// Whether a frame was written after the frame before it, whose checksum is assumed to be right.
  [[nodiscard]] bool follows(std::size_t frame) const {
    const std::string_view whole = bytes_.substr(offset(frame), frame_bytes_);
    const WalChecksum before =
        frame == 0 ? checksum_at(bytes_, 24) : checksum_at(bytes_, offset(frame - 1) + 16);
    const WalChecksum head = order_.add(whole.substr(0, 8), before);
    return is_present(frame) &&
           order_.add(whole.substr(kFrameHeadBytes), head) == checksum_at(whole, 16);
  }

 private:
  [[nodiscard]] std::size_t page_bytes() const { return big_endian(bytes_, 8) & ~std::size_t{7}; }

  std::string_view bytes_;
  WordOrder order_;
  std::size_t frame_bytes_;
};

/// Whether frames after the broken one are of a later transaction. A run of frames counts only
/// while each follows the one before it: leftovers of a failed transaction are overwritten from
/// their start, and the rest does not follow the new frames.
bool has_later_transaction(const WalFrames& frames, std::size_t broken) {
  bool committed = frames.commits(broken);
  for (std::size_t at = broken + 1; at < frames.count(); ++at) {
    const bool follows = frames.follows(at);
    if (follows && committed) return true;
    committed = follows && frames.commits(at);
  }
  return false;
}

}  // namespace

std::optional<WalBreak> find_wal_break(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  if (bytes.size() < kHeadBytes) return WalBreak{};
  const WalFrames frames(bytes);
  if (!frames.head_holds()) return WalBreak{};
  for (std::size_t at = 0; at < frames.count(); ++at) {
    if (frames.follows(at)) continue;
    const bool later = has_later_transaction(frames, at);
    // The rest of an earlier generation follows the end of this one.
    if (!later && !frames.is_present(at)) return std::nullopt;
    return WalBreak{at + 1, frames.offset(at), later};
  }
  const std::size_t end = frames.offset(frames.count());
  if (end == bytes.size()) return std::nullopt;
  return WalBreak{frames.count() + 1, end, false};
}

StorageResult<std::optional<WalBreak>> scan_wal(const std::string& path) {
  RealStorage storage;
  while (true) {
    StorageResult<std::string> bytes = storage.read_file(path, kWalBytesMax);
    if (!bytes && bytes.error().failure == StorageFailure::kNotFound) return std::nullopt;
    if (!bytes) return forward_failure(bytes);
    std::optional<WalBreak> found = find_wal_break(*bytes);
    if (!found || !found->later_transaction) return found;
    // A writer may have begun a new generation while the file was read.
    const StorageResult<std::string> again = storage.read_file(path, kWalBytesMax);
    const bool same_head = again && again->substr(0, kHeadBytes) == bytes->substr(0, kHeadBytes);
    if (same_head && find_wal_break(*again) == found) return found;
  }
}

}  // namespace orrery

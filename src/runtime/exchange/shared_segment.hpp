// runtime/exchange/shared_segment.hpp - unnamed memory that ranks of one machine share.
//
// One rank makes it, the others open it through the maker's process; so it disappears with the last
// of them however they end, and nothing is left in /dev/shm. Move-only owner of one mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

/// How another process of the machine finds a segment.
struct SegmentAddress {
  std::string host;  ///< which boot of which machine, which PID namespace, and which domain
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;
  std::uint64_t cookie = 0;  ///< written at its start by the maker

  friend bool operator==(const SegmentAddress&, const SegmentAddress&) = default;
};

/// Returns SegmentAddress::host of this process; "" when it cannot be determined. Processes of
/// different domains share no memory, as if they were on two machines.
[[nodiscard]] std::string shared_memory_host(const std::string& domain = {});

class SharedSegment {
 public:
  /// Makes a zeroed segment; all pages are mapped before it returns. Errors: no memory left.
  [[nodiscard]] static Result<SharedSegment> make(std::uint64_t bytes, std::uint64_t cookie,
                                                  const std::string& domain = {});
  /// Opens a segment from a process of `host`. Errors: another machine, missing permissions, a
  /// process that has ended, or another process that got its number.
  [[nodiscard]] static Result<SharedSegment> open(const SegmentAddress& address,
                                                  const std::string& host);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;
  ~SharedSegment();

  [[nodiscard]] const SegmentAddress& address() const { return address_; }
  /// Page-aligned. Its first 64 bytes are the segment's own.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return address_.bytes; }

 private:
  SharedSegment(FileDescriptor fd, SegmentAddress address, std::byte* data)
      : fd_(std::move(fd)), address_(std::move(address)), data_(data) {}

  FileDescriptor fd_;
  SegmentAddress address_;
  std::byte* data_ = nullptr;
};

}  // namespace orrery

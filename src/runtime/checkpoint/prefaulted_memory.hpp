// runtime/checkpoint/prefaulted_memory.hpp - memory whose pages are already mapped, for O_DIRECT
// and for copies that must not wait for the kernel.
//
// Page-aligned, anonymous, in huge pages where the system has them. Only grows, and loses its
// contents when it does. Movable, not copyable. Cost of growing: about 0.2 s per GiB, once.
#pragma once

#include <cstddef>
#include <span>

#include "base/error.hpp"

namespace orrery {

class PrefaultedMemory {
 public:
  static constexpr std::size_t kAlignment = 4096;

  PrefaultedMemory() = default;
  PrefaultedMemory(PrefaultedMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PrefaultedMemory& operator=(PrefaultedMemory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PrefaultedMemory();

  /// Makes sure of at least `bytes`; new memory is zero. Error: the system has not enough memory.
  [[nodiscard]] Status reserve(std::size_t bytes);

  [[nodiscard]] char* data() { return begin_; }
  [[nodiscard]] const char* data() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  char* begin_ = nullptr;
  std::size_t size_ = 0;
};

/// Returns `bytes` rounded up to a multiple of the alignment.
[[nodiscard]] constexpr std::uint64_t aligned_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = PrefaultedMemory::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace orrery

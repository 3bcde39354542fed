// runtime/checkpoint/prefaulted_memory.hpp - memory whose pages are there already, for O_DIRECT and
// for copies that must not wait for the kernel.
//
// Page-aligned, anonymous, in huge pages where the system has them. Grows only; what it held is
// lost then. Moves, does not copy. Cost of growing: about 0.1 s a GiB, once.
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

  /// Has at least `bytes`, zeros where it is new. Error: the system has no such memory.
  [[nodiscard]] Status reserve(std::size_t bytes);

  [[nodiscard]] char* data() { return begin_; }
  [[nodiscard]] const char* data() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  char* begin_ = nullptr;
  std::size_t size_ = 0;
};

/// `bytes` rounded up to a multiple of the alignment.
[[nodiscard]] constexpr std::uint64_t aligned_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = PrefaultedMemory::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace orrery

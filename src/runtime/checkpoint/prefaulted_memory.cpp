#include "runtime/checkpoint/prefaulted_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace orrery {

PrefaultedMemory::~PrefaultedMemory() {
  if (begin_ != nullptr) ::munmap(begin_, size_);
}

Status PrefaultedMemory::reserve(std::size_t bytes) {
  if (bytes <= size_) return {};
  const std::size_t size = aligned_bytes(bytes);
  void* const found =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) {
    return environment_error(fmt::format("cannot get {} bytes of memory for a snapshot: {}", size,
                                         std::generic_category().message(errno)));
  }
  PrefaultedMemory grown;
  grown.begin_ = static_cast<char*>(found);
  grown.size_ = size;
  // This is only advice: without huge pages, small ones are used.
  static_cast<void>(::madvise(found, size, MADV_HUGEPAGE));
  std::memset(found, 0, size);
  *this = std::move(grown);
  return {};
}

}  // namespace orrery

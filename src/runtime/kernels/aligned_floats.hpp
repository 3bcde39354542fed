// runtime/kernels/aligned_floats.hpp - a vector of floats that begins at a cache line, so that
// results never depend on where the process happened to allocate it.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace orrery {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <class U>
  explicit CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* pointer, std::size_t) { ::operator delete(pointer, kAlignment); }

  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

using AlignedFloats = std::vector<float, CacheLineAllocator<float>>;
using AlignedBytes = std::vector<std::byte, CacheLineAllocator<std::byte>>;

}  // namespace orrery

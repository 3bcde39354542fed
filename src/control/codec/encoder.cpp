// control/codec/encoder.cpp - grows the buffer of an encoder.
#include "control/codec/encoder.hpp"

#include <algorithm>

namespace orrery {

void Encoder::grow(std::size_t bytes) {
  constexpr std::size_t kLeast = 256;
  const std::size_t size = this->size();
  const std::size_t capacity = std::max(kLeast, 2 * (size + bytes));
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (size > 0) std::memcpy(larger.get(), buffer_.get(), size);
  buffer_ = std::move(larger);
  at_ = buffer_.get() + size;
  end_ = buffer_.get() + capacity;
}

}  // namespace orrery

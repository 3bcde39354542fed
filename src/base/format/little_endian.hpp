// base/format/little_endian.hpp - whole numbers as bytes, lowest first, on every CPU. Cost: one
// move.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>

namespace orrery {

template <std::unsigned_integral Word>
void store_little_endian(Word value, char* to) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &value, sizeof value);
  } else {
    for (std::size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<char>(value >> (8 * i));
  }
}

template <std::unsigned_integral Word>
[[nodiscard]] Word load_little_endian(const char* from) {
  Word value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, sizeof value);
  } else {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value = static_cast<Word>(value | Word{static_cast<unsigned char>(from[i])} << (8 * i));
    }
  }
  return value;
}

}  // namespace orrery

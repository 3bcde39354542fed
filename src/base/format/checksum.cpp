// base/format/checksum.cpp - multiply and fold.
#include "base/format/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

__extension__ typedef unsigned __int128 Uint128;

// Fractional parts of the square roots of 2, 3, 5 and 7: nothing up the sleeve. The last is odd
// already, so that the last product is a bijection before it is folded.
constexpr std::uint64_t kFirst = 0x6a09e667f3bcc908;
constexpr std::uint64_t kSecond = 0xbb67ae8584caa73b;
constexpr std::uint64_t kThird = 0x3c6ef372fe94f82b;
constexpr std::uint64_t kLast = 0xa54ff53a5f1d36f1;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Uint128 product = static_cast<Uint128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t with_words(std::uint64_t state, const char* bytes) {
  return std::rotl(state, 29) + fold(load_little_endian<std::uint64_t>(bytes) ^ kFirst,
                                     load_little_endian<std::uint64_t>(bytes + 8) ^ state);
}

}  // namespace

std::uint64_t checksum(std::string_view bytes, std::uint64_t before) {
  constexpr std::size_t kStep = 16;
  std::uint64_t state = before ^ kSecond;
  std::size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) state = with_words(state, bytes.data() + at);
  char rest[kStep] = {};
  if (at < bytes.size()) std::memcpy(rest, bytes.data() + at, bytes.size() - at);
  state = with_words(state, rest);
  return fold(fold(state ^ kThird, bytes.size() ^ kSecond) ^ state, kLast);
}

std::uint64_t block_checksum(std::string_view bytes) {
  constexpr std::size_t kStep = 16;
  std::uint64_t a = kFirst;
  std::uint64_t b = kSecond;
  std::uint64_t c = kThird;
  std::uint64_t d = kLast;
  std::size_t at = 0;
  for (; at + 4 * kStep <= bytes.size(); at += 4 * kStep) {
    // Written out, so that the chains stay in registers without a loop being unrolled.
    const char* from = bytes.data() + at;
    a = with_words(a, from);
    b = with_words(b, from + kStep);
    c = with_words(c, from + 2 * kStep);
    d = with_words(d, from + 3 * kStep);
  }
  std::array<char, 32> ends{};
  store_little_endian(a, ends.data());
  store_little_endian(b, ends.data() + 8);
  store_little_endian(c, ends.data() + 16);
  store_little_endian(d, ends.data() + 24);
  return checksum(bytes.substr(at), checksum({ends.data(), ends.size()}, bytes.size()));
}

}  // namespace orrery

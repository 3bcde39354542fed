// base/numbers/rng.cpp - xoshiro256++, its seeding and the naming of streams.
#include "base/numbers/rng.hpp"

#include <bit>

#include "base/assert.hpp"

namespace orrery {
namespace {

__extension__ typedef unsigned __int128 Uint128;

/// The step of SplitMix64: 2^64 divided by the golden ratio, odd.
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

/// The output function of SplitMix64, a bijection in which every input bit reaches every output
/// bit.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// FNV-1a, 64 bits (G. Fowler, L. C. Noll, K.-P. Vo).
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

// Four successive outputs of SplitMix64 are distinct, so at most one word is 0.
Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_.words) {
    seed += kGolden;
    word = mix(seed);
  }
}

Rng Rng::stream(std::uint64_t seed, std::string_view name) {
  return Rng(mix(mix(seed + kGolden) + hash_of(name)));
}

Rng Rng::from_state(const State& state) {
  ORRERY_ASSERT(state != State{}, "xoshiro never leaves the state of all zeros");
  return Rng(state);
}

std::uint64_t Rng::next_u64() {
  auto& s = state_.words;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

std::uint64_t Rng::below(std::uint64_t n) {
  ORRERY_ASSERT(n > 0, "there is no number below 0");
  Uint128 product = static_cast<Uint128>(next_u64()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t surplus = (0 - n) % n;  // 2^64 mod n
    while (static_cast<std::uint64_t>(product) < surplus) {
      product = static_cast<Uint128>(next_u64()) * n;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace orrery

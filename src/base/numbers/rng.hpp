// base/numbers/rng.hpp - the only source of random numbers in simulated and decided things.
//
// xoshiro256++ (D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", ACM
// TOMS 47(4), 2021), its state filled by SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). The same seed gives the same numbers on
// every machine.
//
// Every component owns its Rng, made with Rng::stream(seed, name): what one component draws never
// shifts what another sees. A copy continues from the same point, so copy only to look ahead.
// Not for secrets. Not thread-safe. Cost: about 1 ns a draw.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace orrery {

class Rng {
 public:
  /// All there is to know about a generator; for snapshots. Invariant: the words are not all 0.
  struct State {
    std::array<std::uint64_t, 4> words{};
    bool operator==(const State&) const = default;
  };

  explicit Rng(std::uint64_t seed);

  /// The generator called `name` under `seed`; it depends on these two alone, not on which streams
  /// exist or were made before. Two names clash with probability 2^-64. Distinct from Rng(seed).
  [[nodiscard]] static Rng stream(std::uint64_t seed, std::string_view name);

  /// Continues where state() was taken. Precondition: the words are not all 0.
  [[nodiscard]] static Rng from_state(const State& state);
  [[nodiscard]] State state() const { return state_; }

  /// 64 uniform bits.
  std::uint64_t next_u64();

  /// Uniform in [0, 1): a multiple of 2^-53, so 1 - uniform() is exact and never 0.
  double uniform();

  /// Uniform in [0, n), without bias (D. Lemire, "Fast random integer generation in an interval",
  /// ACM TOMACS 29(1), 2019). Precondition: n > 0. Draws one word, rarely (n / 2^64) one more.
  std::uint64_t below(std::uint64_t n);

  bool operator==(const Rng&) const = default;

 private:
  explicit Rng(const State& state) : state_(state) {}

  State state_;
};

}  // namespace orrery

// node/machine/burn_in.hpp - tests the processors and the memory of a machine: every CPU multiplies
// matrices whose product is known, and writes patterns into memory that it reads back.
//
// This is what `orrery-agent --burn-in` does, which an agent runs where its operator names no other
// check. The machine under test is idle: the burn-in takes all CPUs, one thread on each. The
// products are exact, in integers and in floating point, so that any other result is a fault of the
// machine. Cost: the time and memory that `size` gives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"

namespace orrery {

struct BurnInSize {
  Duration time = Duration::seconds(30);          ///< at least one round is made
  std::uint64_t memory = std::uint64_t{1} << 30;  ///< bytes, all CPUs together
};

/// Errors: the first CPU that computed or read something wrong, and what.
[[nodiscard]] Status burn_in(const Clock& clock, const BurnInSize& size);

/// The product of the matrices A[i][k] = x_i + y_k and B[k][j] = u_k + v_j, each number of which is
/// known: n x_i v_j + x_i sum(u) + v_j sum(y) + sum(y u). Entries are whole and so small that a
/// double holds every sum exactly.
class KnownProduct {
 public:
  static constexpr std::uint32_t kSize = 96;

  explicit KnownProduct(std::uint64_t seed);
  /// Returns the product row by row; Number is double or std::uint64_t.
  template <class Number>
  [[nodiscard]] std::vector<Number> multiply() const;
  /// Describes the first wrong number; empty: none.
  template <class Number>
  [[nodiscard]] std::string fault(const std::vector<Number>& product) const;

 private:
  std::vector<std::uint64_t> x_, y_, u_, v_;
};

/// Writes a different value into each word, computed from its place and from `seed`.
void write_pattern(std::span<std::uint64_t> memory, std::uint64_t seed);
/// Describes the first word that differs from what was written, with its bits; empty: none.
[[nodiscard]] std::string pattern_fault(std::span<const std::uint64_t> memory, std::uint64_t seed);

}  // namespace orrery

// node/burn_in.hpp - tries the processors and the memory of a machine out: every CPU multiplies
// matrices whose product is known, and writes patterns into memory that it reads back.
//
// What `orrery-agent --burn-in` does, which an agent runs where its operator names no other check.
// A machine that is to be tried out is idle: it takes all CPUs, one thread on each. The products
// are exact, in whole numbers and in floating point, so that any other one is a fault of the
// machine. Cost: what it is told to.
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

/// A[i][k] = x_i + y_k times B[k][j] = u_k + v_j, so that each number of the product is known:
/// n x_i v_j + x_i sum(u) + v_j sum(y) + sum(y u). Entries are whole and so small that a double
/// holds every sum exactly.
class KnownProduct {
 public:
  static constexpr std::uint32_t kSize = 96;

  explicit KnownProduct(std::uint64_t seed);
  /// Row by row; in Number = double or std::uint64_t.
  template <class Number>
  [[nodiscard]] std::vector<Number> multiply() const;
  /// The first that is not as it must be; empty: none.
  template <class Number>
  [[nodiscard]] std::string fault(const std::vector<Number>& product) const;

 private:
  std::vector<std::uint64_t> x_, y_, u_, v_;
};

/// Each word of it another one, of its place and of `seed`.
void write_pattern(std::span<std::uint64_t> memory, std::uint64_t seed);
/// The first word that is not as it was written, with the bits that differ; empty: none.
[[nodiscard]] std::string pattern_fault(std::span<const std::uint64_t> memory, std::uint64_t seed);

}  // namespace orrery

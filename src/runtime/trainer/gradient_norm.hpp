// runtime/trainer/gradient_norm.hpp - the length of a gradient, summed in an order that does not
// depend on who holds which part of it: squares in blocks of 4096 elements of the flat vector, the
// blocks by a binary tree. A rank that holds some blocks makes their sums; whoever has all sums
// adds the tree.
#pragma once

#include <cstddef>
#include <span>

namespace orrery {

/// Elements of a block. Ranges that ranks own begin at a multiple of it.
inline constexpr std::size_t kNormBlock = 4096;

/// Blocks of so many elements; the last may be short.
[[nodiscard]] constexpr std::size_t norm_blocks(std::size_t elements) {
  return (elements + kNormBlock - 1) / kNormBlock;
}

/// The sum of squares of each block. Precondition: sums.size() == norm_blocks(values.size()).
void block_squares(std::span<const float> values, std::span<double> sums);

/// The sum by a binary tree: the first 2^k terms, 2^k the greatest below their number, and the
/// rest. 0 of none.
[[nodiscard]] double tree_sum(std::span<const double> terms);

/// The Euclidean length of the whole.
[[nodiscard]] double gradient_norm(std::span<const float> gradient);

/// What a gradient of length `norm` is multiplied by to be no longer than `limit`; 1 for a limit of
/// 0, which is none. Precondition: norm is finite.
[[nodiscard]] double clip_factor(double norm, double limit);

}  // namespace orrery

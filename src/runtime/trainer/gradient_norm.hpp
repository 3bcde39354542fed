// runtime/trainer/gradient_norm.hpp - the length of a gradient, summed in an order that does not
// depend on which rank holds which part of it: squares are summed in blocks of 4096 elements of the
// flat vector, the blocks by a binary tree. A rank that holds some blocks computes their sums; a
// rank that has all sums adds them up by the tree.
#pragma once

#include <cstddef>
#include <span>

namespace orrery {

/// Elements of a block. Ranges that ranks own begin at a multiple of it.
inline constexpr std::size_t kNormBlock = 4096;

/// Number of blocks of `elements` elements; the last may be short.
[[nodiscard]] constexpr std::size_t norm_blocks(std::size_t elements) {
  return (elements + kNormBlock - 1) / kNormBlock;
}

/// Computes the sum of squares of each block. Precondition: sums.size() ==
/// norm_blocks(values.size()).
void block_squares(std::span<const float> values, std::span<double> sums);

/// Returns the sum by a binary tree: the first 2^k terms, where 2^k is the greatest power below
/// their number, and the rest. 0 if there are none.
[[nodiscard]] double tree_sum(std::span<const double> terms);

/// Returns the Euclidean length of the whole gradient.
[[nodiscard]] double gradient_norm(std::span<const float> gradient);

/// Returns the factor that makes a gradient of length `norm` no longer than `limit`; 1 for a limit
/// of 0, which means no limit. Precondition: norm is finite.
[[nodiscard]] double clip_factor(double norm, double limit);

}  // namespace orrery

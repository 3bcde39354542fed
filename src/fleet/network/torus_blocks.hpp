// fleet/network/torus_blocks.hpp - the torus that a number of equal blocks forms: cubes behind
// optical switches, or hosts joined directly. A pure function; O(divisors squared) of the number.
#pragma once

#include <vector>

namespace orrery {

/// Returns the sides of a torus of `blocks` blocks, as near to equal as possible: the least sum,
/// ties by the shorter x, then y. 140 blocks of 4 x 4 x 4 are 16 x 20 x 28, 64 of 2 x 2 are 16 x
/// 16. Preconditions: blocks >= 1; `block` has two or three sides, each >= 1.
[[nodiscard]] std::vector<int> torus_of_blocks(int blocks, const std::vector<int>& block);

}  // namespace orrery

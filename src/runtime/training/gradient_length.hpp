// runtime/training/gradient_length.hpp - the length of a gradient that ranks have parts of.
//
// Squares are summed in blocks of a part's vector, the blocks by a tree over the part, the parts by
// a tree over the replica: the bits do not depend on which rank holds which blocks, and for a whole
// model they are those of gradient_norm().
#pragma once

#include "runtime/ranks/rank_grid.hpp"
#include "runtime/training/whole_model.hpp"

namespace orrery {

/// Returns what one of `replicas` holds of a part's vector of `size` floats if they divide it among
/// themselves: whole norm blocks (kNormBlock).
[[nodiscard]] FloatRange held_range(std::size_t size, std::uint32_t replica,
                                    std::uint32_t replicas);

/// Returns the held_range() of each rank of a column, in bytes.
[[nodiscard]] std::vector<RankPart> held_parts(std::size_t size, std::uint32_t replicas);

/// Returns the sum of squares of the whole gradient, of which this rank has `own`: all of its part,
/// or its held_range(). All ranks of the grid call it and get the same value. A tensor that all
/// ranks of a replica have counts once.
[[nodiscard]] Shared<double> squared_length(RankGrid& grid, const ParameterLayout& layout,
                                            const HeldFloats& own);

}  // namespace orrery

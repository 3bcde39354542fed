// runtime/training/gradient_length.hpp - the length of a gradient that ranks have parts of.
//
// Squares are summed in blocks of a part's vector, the blocks by a tree over the part, the parts by
// a tree over the replica: whoever holds which blocks, the bits are the same, and for a model that
// is whole those of gradient_norm().
#pragma once

#include "runtime/training/rank_grid.hpp"
#include "runtime/training/whole_model.hpp"

namespace orrery {

/// What one of `replicas` holds of a part's vector of `size` floats where they share it out: whole
/// blocks of the gradient's length.
[[nodiscard]] FloatRange held_range(std::size_t size, std::uint32_t replica,
                                    std::uint32_t replicas);

/// The same of all of a column's ranks, in bytes.
[[nodiscard]] std::vector<RankPart> held_parts(std::size_t size, std::uint32_t replicas);

/// The sum of squares of the whole gradient, of which this rank has `own`: all of its part, or its
/// held_range(). All ranks of the grid call it and have the same. A tensor that all ranks of a
/// replica have counts once.
[[nodiscard]] Shared<double> squared_length(RankGrid& grid, const ParameterLayout& layout,
                                            const HeldFloats& own);

}  // namespace orrery

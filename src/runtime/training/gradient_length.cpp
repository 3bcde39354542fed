#include "runtime/training/gradient_length.hpp"

#include <algorithm>

#include "runtime/kernels/kernels.hpp"
#include "runtime/trainer/gradient_norm.hpp"

namespace orrery {
namespace {

/// Returns the sum of squares of each held block.
std::vector<double> squares_of_blocks(const ParameterLayout& layout, const HeldFloats& own) {
  std::vector<double> sums(norm_blocks(own.held.size()));
  if (layout.part().number() == 0) {
    block_squares(own.floats, sums);
    return sums;
  }
  for (const ParameterTensor& tensor : layout.tensors()) {
    if (!tensor.counts) continue;
    const FloatRange here = FloatRange{tensor.begin, tensor.begin + tensor.size}.within(own.held);
    for (std::size_t at = here.begin; at < here.end;) {
      const std::size_t block = (at - own.held.begin) / kNormBlock;
      const std::size_t end = std::min(here.end, own.held.begin + (block + 1) * kNormBlock);
      sums[block] += kernels().squares(own.floats.data() + (at - own.held.begin),
                                       static_cast<std::int64_t>(end - at));
      at = end;
    }
  }
  return sums;
}

/// Gathers the block sums of a whole part, if its blocks are divided over the column.
Shared<std::vector<double>> all_blocks(Communicator& column, std::size_t size,
                                       std::vector<double> own) {
  const std::size_t most = norm_blocks(size) / column.size() + 1;
  own.resize(most);
  std::vector<double> padded(most * column.size());
  const auto gathered =
      column.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(padded)));
  if (!gathered) return tl::unexpected(gathered.error());
  std::vector<double> all;
  for (std::uint32_t rank = 0; rank < column.size(); ++rank) {
    const double* from = padded.data() + rank * most;
    all.insert(all.end(), from, from + norm_blocks(held_range(size, rank, column.size()).size()));
  }
  return all;
}

}  // namespace

FloatRange held_range(std::size_t size, std::uint32_t replica, std::uint32_t replicas) {
  const FloatRange blocks = even_range(norm_blocks(size), replica, replicas);
  return {std::min(size, blocks.begin * kNormBlock), std::min(size, blocks.end * kNormBlock)};
}

std::vector<RankPart> held_parts(std::size_t size, std::uint32_t replicas) {
  std::vector<RankPart> parts;
  parts.reserve(replicas);
  for (std::uint32_t replica = 0; replica < replicas; ++replica) {
    const FloatRange held = held_range(size, replica, replicas);
    parts.push_back({held.begin * sizeof(float), held.size() * sizeof(float)});
  }
  return parts;
}

Shared<double> squared_length(RankGrid& grid, const ParameterLayout& layout,
                              const HeldFloats& own) {
  std::vector<double> blocks = squares_of_blocks(layout, own);
  if (own.held.size() < layout.size()) {
    auto all = all_blocks(grid.column(), layout.size(), std::move(blocks));
    if (!all) return tl::unexpected(all.error());
    blocks = std::move(*all);
  }
  const double part = tree_sum(blocks);
  if (layout.part().whole()) return part;
  std::vector<double> parts(grid.replica().size());
  const auto told = grid.replica().all_gather(std::as_bytes(std::span(&part, 1)),
                                              std::as_writable_bytes(std::span(parts)));
  if (!told) return tl::unexpected(told.error());
  return tree_sum(parts);
}

}  // namespace orrery

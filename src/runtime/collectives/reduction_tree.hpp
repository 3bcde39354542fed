// runtime/collectives/reduction_tree.hpp - sums in an order that does not depend on which ranks
// compute them.
//
// The leaves of a fixed binary tree are numbered; a node sums its left half, then its right half,
// and splits at the largest power of two below its size. The sum has the same bits whether it is
// computed from every leaf or from the sums of any nodes that cover all leaves. Pure functions.
// Cost: O(elements x sources) additions, in blocks that stay in the L1 cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace orrery {

enum class SumType : std::uint8_t { kFloat32, kBfloat16, kInt32 };

/// A node of the tree: leaves [begin, end).
struct LeafRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] std::uint32_t size() const { return end - begin; }
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};

/// Where a node of more than one leaf splits.
[[nodiscard]] std::uint32_t split_of(const LeafRange& node);

/// Returns one node for each of `members`, in their order, which together cover all leaves, as
/// evenly as nodes allow. Precondition: 1 <= members <= leaves.
[[nodiscard]] std::vector<LeafRange> share_leaves(std::uint32_t leaves, std::uint32_t members);

struct NodeSum {
  LeafRange node;
  std::span<const std::byte> elements;
};

/// Writes the sum over all leaves to `out`, which may be one of the sources. bfloat16 is added in
/// float and rounded once, to the nearest even. Preconditions: the sources are nodes that cover the
/// leaves, ascending, of the length of `out`.
void sum_by_tree(SumType type, std::span<const NodeSum> sources, std::span<std::byte> out);

}  // namespace orrery

#include "runtime/collectives/reduction_tree.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBlock = 1024;  ///< elements

/// How elements of a type are read and written; they are added as `Sum`.
struct Float32 {
  using Element = float;
  using Sum = float;
};
struct Int32 {
  using Element = std::uint32_t;  // wraps, as two's complement does
  using Sum = std::uint32_t;
};
struct Bfloat16 {
  using Element = std::uint16_t;
  using Sum = float;
};

float widened(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t narrowed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// `out` may be one of the two, because elements are added independently.
template <class Sum>
void add(const Sum* left, const Sum* right, Sum* out, std::size_t count) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

template <class Type>
class BlockSum {
 public:
  using Element = typename Type::Element;
  using Sum = typename Type::Sum;
  static constexpr bool kSame = std::is_same_v<Element, Sum>;

  explicit BlockSum(std::span<const NodeSum> sources) : sources_(sources) {}

  /// Sums elements [first, first + count) and writes the root to `out`.
  void write(std::size_t first, std::size_t count, Element* out) {
    first_ = first;
    count_ = count;
    const auto all = static_cast<std::uint32_t>(sources_.size());
    if constexpr (kSame) {
      if (all == 1) {
        std::memmove(out, element(0), count * sizeof(Element));
      } else {
        const auto [left, right] = halves({0, all}, 0);
        add(left, right, out, count);
      }
    } else {
      const Sum* sum = value({0, all}, {0, 0});
      for (std::size_t i = 0; i < count; ++i) out[i] = narrowed(sum[i]);
    }
  }

 private:
  /// Consecutive sources that form a node.
  struct Run {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  struct Halves {
    const Sum* left = nullptr;
    const Sum* right = nullptr;
  };

  [[nodiscard]] const Element* element(std::uint32_t source) const {
    return reinterpret_cast<const Element*>(sources_[source].elements.data()) + first_;
  }

  /// A node's depth in the tree, and its side below its parent.
  struct Place {
    std::size_t depth = 0;
    std::size_t side = 0;
  };

  const Sum* value(const Run& run, const Place& at) {
    if (run.end - run.begin == 1) {
      if constexpr (kSame) {
        return element(run.begin);
      } else {
        Sum* wide = room(at);
        const Element* from = element(run.begin);
        for (std::size_t i = 0; i < count_; ++i) wide[i] = widened(from[i]);
        return wide;
      }
    }
    const Halves parts = halves(run, at.depth);
    Sum* sum = room(at);
    add(parts.left, parts.right, sum, count_);
    return sum;
  }

  Halves halves(const Run& run, std::size_t depth) {
    const LeafRange node{sources_[run.begin].node.begin, sources_[run.end - 1].node.end};
    const std::uint32_t split = split_of(node);
    std::uint32_t middle = run.begin;
    while (sources_[middle].node.begin < split) ++middle;
    ORRERY_ASSERT(sources_[middle].node.begin == split, "sources are nodes of the tree");
    const Sum* left = value({run.begin, middle}, {depth + 1, 0});
    return {left, value({middle, run.end}, {depth + 1, 1})};
  }

  /// Returns the buffer of a node. A left sum keeps its buffer while the right half is summed
  /// deeper in the tree.
  Sum* room(const Place& at) {
    const std::size_t index = 2 * at.depth + at.side;
    if (blocks_.size() <= index) blocks_.resize(index + 1);
    if (blocks_[index].empty()) blocks_[index].resize(kBlock);
    return blocks_[index].data();
  }

  std::span<const NodeSum> sources_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::vector<std::vector<Sum>> blocks_;
};

template <class Type>
void sum_all(std::span<const NodeSum> sources, std::span<std::byte> out) {
  using Element = typename Type::Element;
  BlockSum<Type> sum(sources);
  auto* to = reinterpret_cast<Element*>(out.data());
  const std::size_t count = out.size() / sizeof(Element);
  for (std::size_t first = 0; first < count; first += kBlock) {
    sum.write(first, std::min(kBlock, count - first), to + first);
  }
}

void share_node(const LeafRange& node, std::uint32_t members, std::vector<LeafRange>& shares) {
  if (members == 1) {
    shares.push_back(node);
    return;
  }
  const std::uint32_t middle = split_of(node);
  const LeafRange left{node.begin, middle};
  const LeafRange right{middle, node.end};
  // The share is rounded, and no side gets more members than leaves.
  const std::uint64_t even =
      (2 * std::uint64_t{members} * left.size() + node.size()) / (2 * std::uint64_t{node.size()});
  const std::uint32_t least = members > right.size() ? members - right.size() : 1;
  const std::uint32_t most = std::min(left.size(), members - 1);
  const std::uint32_t of_left = std::clamp(static_cast<std::uint32_t>(even), least, most);
  share_node(left, of_left, shares);
  share_node(right, members - of_left, shares);
}

}  // namespace

std::uint32_t split_of(const LeafRange& node) {
  ORRERY_ASSERT(node.size() > 1, "a leaf does not split");
  return node.begin + std::bit_ceil(node.size()) / 2;
}

std::vector<LeafRange> share_leaves(std::uint32_t leaves, std::uint32_t members) {
  ORRERY_ASSERT(members >= 1 && members <= leaves, "each member has a leaf");
  std::vector<LeafRange> shares;
  shares.reserve(members);
  share_node({0, leaves}, members, shares);
  return shares;
}

void sum_by_tree(SumType type, std::span<const NodeSum> sources, std::span<std::byte> out) {
  switch (type) {
    case SumType::kFloat32:
      return sum_all<Float32>(sources, out);
    case SumType::kBfloat16:
      return sum_all<Bfloat16>(sources, out);
    case SumType::kInt32:
      return sum_all<Int32>(sources, out);
  }
}

}  // namespace orrery

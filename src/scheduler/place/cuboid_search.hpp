// scheduler/place/cuboid_search.hpp - finds a free cuboid in a box of cells, the one that leaves
// the least fragmented room.
//
// place_slice makes one search for all boxes of one shape (tori, or cubes of one) and passes them
// to look_at() one after the other. It holds prefix sums of free cells from the corner on, so that
// the free cells of any cuboid are counted in O(1), also of one that wraps around a closed
// dimension. One thread. Memory: 4 bytes a cell, twice that for each closed dimension.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fleet/network/torus_grid.hpp"

namespace orrery {

/// The cells at 0 <= c[d] < sides[d]; in a closed dimension the last is adjacent to the first.
/// Invariant: a block's sides divide the box's.
struct CellBox {
  Sides sides{1, 1, 1};
  std::array<bool, 3> closed{};
  Sides block{1, 1, 1};  ///< sides of a node's cells, which are best kept together

  /// Position of a cell; x varies fastest.
  [[nodiscard]] std::uint32_t index(const Sides& at) const {
    return at[0] + sides[0] * (at[1] + sides[1] * at[2]);
  }

  friend bool operator==(const CellBox&, const CellBox&) = default;
};

/// Invariant: the corner lies in the box; the sides may wrap around a closed dimension.
struct Cuboid {
  Sides corner{};
  Sides sides{1, 1, 1};

  friend bool operator==(const Cuboid&, const Cuboid&) = default;
};

/// Calls visit(index) for each cell of a cuboid from its corner on; x varies fastest.
template <class Visit>
void for_each_cell(const CellBox& box, const Cuboid& cuboid, Visit&& visit) {
  const auto wrapped = [&](std::size_t d, std::uint32_t step) {
    const std::uint32_t at = cuboid.corner[d] + step;
    return at < box.sides[d] ? at : at - box.sides[d];
  };
  for (std::uint32_t z = 0; z < cuboid.sides[2]; ++z) {
    for (std::uint32_t y = 0; y < cuboid.sides[1]; ++y) {
      for (std::uint32_t x = 0; x < cuboid.sides[0]; ++x) {
        visit(box.index({wrapped(0, x), wrapped(1, y), wrapped(2, z)}));
      }
    }
  }
}

/// The distinct orientations of a cuboid, the requested one first.
[[nodiscard]] std::vector<Sides> orientations(const Sides& sides);

class CuboidSearch {
 public:
  /// Starts with a box without a free cell.
  explicit CuboidSearch(const CellBox& box);

  /// Sets the free cells: 0 or 1 for each cell of the box. O(cells).
  void look_at(std::span<const std::uint8_t> free);

  [[nodiscard]] const CellBox& box() const { return box_; }
  [[nodiscard]] std::uint32_t free_cells() const { return count({{}, box_.sides}); }

  /// A free cuboid of the sides in any orientation: the one in the fewest blocks, then with the
  /// fewest free neighbours, so that it lies in a corner rather than in the middle; ties by the
  /// lowest corner (z, y, x), then by the order of orientations(). None: there is none. O(cells).
  [[nodiscard]] std::optional<Cuboid> tightest(const Sides& sides) const;

  /// A free cuboid of the sides in any orientation: the one with the lowest corner.
  [[nodiscard]] std::optional<Cuboid> first(const Sides& sides) const;

 private:
  /// Free cells of a cuboid. O(1).
  [[nodiscard]] std::uint32_t count(const Cuboid& cuboid) const;
  [[nodiscard]] std::uint32_t blocks(const Cuboid& cuboid) const;
  /// Free cells next to a cuboid; one that touches it twice counts twice. O(1).
  [[nodiscard]] std::uint32_t free_neighbours(const Cuboid& cuboid) const;
  /// Calls visit(corner) for each free cuboid of the sides in this orientation, in order of
  /// corners, until it returns false.
  template <class Visit>
  void for_each_free(const Sides& sides, Visit&& visit) const;

  CellBox box_;
  Sides reach_;  ///< cells the sums cover along each axis: twice the side where closed
  std::vector<std::uint32_t> sums_;
};

}  // namespace orrery

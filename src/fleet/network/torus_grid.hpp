// fleet/network/torus_grid.hpp - the position of each accelerator of a domain in its torus.
//
// Devices are numbered as follows: cubes in x-fastest order (a torus without cubes is one cube);
// within a cube node by node, each a block of equal sides, blocks in x-fastest order; within a
// block its devices, in x-fastest order. A node's block is the flattest that tiles the cube: least
// in z, then most square, then longer in y. So a host of 4 is 2 x 2 x 1, one of 8 is 2 x 4 x 1, and
// a Trn2 instance of 16 in 4 x 4 x 4 is a plane of 4 x 4, whose z links join instances
// (catalog/fabrics.yaml).
//
// A value, made from a node group; every function is O(1). Invariant: device() and coordinates()
// are inverse; the torus's sides are multiples of a cube's, and a cube's of a block's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "fleet/topology.hpp"

namespace orrery {

/// Three lengths, or a position along three axes: x, y, z.
using Sides = std::array<std::uint32_t, 3>;

[[nodiscard]] constexpr std::uint32_t volume(const Sides& sides) {
  return sides[0] * sides[1] * sides[2];
}

class TorusGrid {
 public:
  /// Returns the grid of a group's domains; none if they are not tori, if a node holds several of
  /// them, or if nodes do not tile a cube.
  [[nodiscard]] static std::optional<TorusGrid> of(const NodeGroup& group);

  [[nodiscard]] const Sides& sides() const { return sides_; }
  /// The sides of a cube; those of the torus if it has no cubes.
  [[nodiscard]] const Sides& cube() const { return cube_; }
  [[nodiscard]] bool has_cubes() const { return has_cubes_; }
  [[nodiscard]] std::uint32_t cubes() const { return volume(sides_) / volume(cube_); }
  /// The sides of a node's block of devices.
  [[nodiscard]] const Sides& block() const { return block_; }
  /// Dimensions in which the last device is next to the first, so that a cuboid may wrap around.
  /// None in a twisted torus, whose wrap-around links also move along another dimension.
  [[nodiscard]] const std::array<bool, 3>& closed() const { return closed_; }

  /// Preconditions: `device` is below the devices of the torus, and `at` is below its sides.
  [[nodiscard]] Sides coordinates(std::uint32_t device) const;
  [[nodiscard]] std::uint32_t device(const Sides& at) const;
  [[nodiscard]] std::uint32_t cube_of(std::uint32_t device) const { return device / volume(cube_); }

 private:
  Sides sides_{1, 1, 1};
  Sides cube_{1, 1, 1};
  Sides block_{1, 1, 1};
  std::array<bool, 3> closed_{};
  bool has_cubes_ = false;
};

}  // namespace orrery

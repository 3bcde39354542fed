// fleet/torus_grid.hpp - where in its torus each accelerator of a domain stands.
//
// The numbering is this: cubes in x-fastest order (a torus without cubes is one); in a cube node by
// node, each a block of the same sides, blocks in x-fastest order; in a block its devices, in
// x-fastest order. A node's block is the flattest that tiles the cube: least in z, then most
// square, then longer in y. So a host of 4 is 2 x 2 x 1, one of 8 is 2 x 4 x 1, and a Trn2 instance
// of 16 in 4 x 4 x 4 is a plane of 4 x 4, whose z links join instances (catalog/fabrics.yaml).
//
// A value, made from a node group; every question is O(1).
// Invariant: device() and coordinates() are inverse; sides are multiples of a cube's, and a cube's
// of a block's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "fleet/topology.hpp"

namespace orrery {

/// Three lengths, or a place along three axes: x, y, z.
using Sides = std::array<std::uint32_t, 3>;

[[nodiscard]] constexpr std::uint32_t volume(const Sides& sides) {
  return sides[0] * sides[1] * sides[2];
}

class TorusGrid {
 public:
  /// None for a group whose domains are no torus, whose nodes hold several of them, or whose nodes
  /// do not tile a cube.
  [[nodiscard]] static std::optional<TorusGrid> of(const NodeGroup& group);

  [[nodiscard]] const Sides& sides() const { return sides_; }
  /// The torus itself where it has no cubes.
  [[nodiscard]] const Sides& cube() const { return cube_; }
  [[nodiscard]] bool has_cubes() const { return has_cubes_; }
  [[nodiscard]] std::uint32_t cubes() const { return volume(sides_) / volume(cube_); }
  /// The devices of a node.
  [[nodiscard]] const Sides& block() const { return block_; }
  /// Dimensions in which the last stands next to the first, so that a cuboid may lie over the end.
  /// None of a twisted torus: there they are moved along another dimension.
  [[nodiscard]] const std::array<bool, 3>& closed() const { return closed_; }

  /// Precondition of both: less than the devices of the torus, less than its sides.
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

#include "fleet/network/torus_grid.hpp"

#include <tuple>

namespace orrery {
namespace {

Sides sides_of(const TorusShape::Coordinates& lengths) {
  Sides sides;
  for (std::size_t d = 0; d < sides.size(); ++d) sides[d] = static_cast<std::uint32_t>(lengths[d]);
  return sides;
}

std::optional<Sides> block_of(std::uint32_t devices, const Sides& cube) {
  std::optional<Sides> best;
  const auto rank = [](const Sides& b) { return std::tuple(b[2], b[0] + b[1], b[0]); };
  for (std::uint32_t x = 1; x <= devices; ++x) {
    if (devices % x != 0 || cube[0] % x != 0) continue;
    for (std::uint32_t y = 1; y <= devices / x; ++y) {
      if (devices / x % y != 0 || cube[1] % y != 0) continue;
      const Sides block{x, y, devices / x / y};
      if (cube[2] % block[2] == 0 && (!best || rank(block) < rank(*best))) best = block;
    }
  }
  return best;
}

/// Returns the position of a number in a box of `sides`, x fastest.
Sides place_in(const Sides& sides, std::uint32_t number) {
  return {number % sides[0], number / sides[0] % sides[1], number / sides[0] / sides[1]};
}

std::uint32_t number_in(const Sides& sides, const Sides& at) {
  return at[0] + sides[0] * (at[1] + sides[1] * at[2]);
}

Sides ratio(const Sides& large, const Sides& small) {
  return {large[0] / small[0], large[1] / small[1], large[2] / small[2]};
}

}  // namespace

std::optional<TorusGrid> TorusGrid::of(const NodeGroup& group) {
  if (!group.scale_up_shape || group.devices == 0) return std::nullopt;
  const auto* torus = std::get_if<TorusShape>(&*group.scale_up_shape);
  if (torus == nullptr || group.scale_up_devices < group.devices) return std::nullopt;
  TorusGrid grid;
  grid.sides_ = sides_of(torus->dims);
  grid.cube_ = torus->cube ? sides_of(*torus->cube) : grid.sides_;
  grid.has_cubes_ = torus->cube.has_value();
  for (std::size_t d = 0; d < grid.closed_.size(); ++d) {
    grid.closed_[d] =
        torus->twist == TorusShape::Twist::kNone && torus->wrap[d] == TorusShape::Wrap::kClosed;
  }
  const std::optional<Sides> block = block_of(group.devices, grid.cube_);
  if (!block || volume(grid.sides_) != group.scale_up_devices) return std::nullopt;
  grid.block_ = *block;
  return grid;
}

Sides TorusGrid::coordinates(std::uint32_t device) const {
  const std::uint32_t per_cube = volume(cube_);
  const std::uint32_t per_block = volume(block_);
  const Sides cube = place_in(ratio(sides_, cube_), device / per_cube);
  const Sides block = place_in(ratio(cube_, block_), device % per_cube / per_block);
  Sides at = place_in(block_, device % per_block);
  for (std::size_t d = 0; d < at.size(); ++d) at[d] += cube[d] * cube_[d] + block[d] * block_[d];
  return at;
}

std::uint32_t TorusGrid::device(const Sides& at) const {
  Sides cube;
  Sides block;
  Sides in_block;
  for (std::size_t d = 0; d < at.size(); ++d) {
    cube[d] = at[d] / cube_[d];
    block[d] = at[d] % cube_[d] / block_[d];
    in_block[d] = at[d] % block_[d];
  }
  return number_in(ratio(sides_, cube_), cube) * volume(cube_) +
         number_in(ratio(cube_, block_), block) * volume(block_) + number_in(block_, in_block);
}

}  // namespace orrery

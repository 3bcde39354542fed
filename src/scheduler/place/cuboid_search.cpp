#include "scheduler/place/cuboid_search.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {

std::vector<Sides> orientations(const Sides& sides) {
  std::vector<Sides> all{sides};
  Sides turned = sides;
  std::sort(turned.begin(), turned.end());
  do {
    if (turned != sides) all.push_back(turned);
  } while (std::next_permutation(turned.begin(), turned.end()));
  return all;
}

CuboidSearch::CuboidSearch(const CellBox& box) : box_(box), reach_(box.sides) {
  for (std::size_t d = 0; d < reach_.size(); ++d) {
    if (box.closed[d] && box.sides[d] > 1) reach_[d] *= 2;
  }
  sums_.resize(std::size_t{reach_[0] + 1} * (reach_[1] + 1) * (reach_[2] + 1));
}

void CuboidSearch::look_at(std::span<const std::uint8_t> free) {
  ORRERY_ASSERT(free.size() == volume(box_.sides), "one value for each cell");
  const std::size_t row = reach_[0] + 1;
  const std::size_t plane = row * (reach_[1] + 1);
  for (std::uint32_t z = 0; z < reach_[2]; ++z) {
    for (std::uint32_t y = 0; y < reach_[1]; ++y) {
      const std::uint8_t* cells = &free[box_.index({0, y % box_.sides[1], z % box_.sides[2]})];
      std::uint32_t* sum = &sums_[plane * (z + 1) + row * (y + 1)];
      std::uint32_t in_row = 0;
      for (std::uint32_t x = 0; x < reach_[0]; ++x) {
        in_row += cells[x < box_.sides[0] ? x : x - box_.sides[0]];
        ++sum;
        *sum = in_row + *(sum - row) + *(sum - plane) - *(sum - plane - row);
      }
    }
  }
}

std::uint32_t CuboidSearch::count(const Cuboid& cuboid) const {
  const std::size_t row = reach_[0] + 1;
  const std::size_t plane = row * (reach_[1] + 1);
  const auto& [corner, sides] = cuboid;
  const std::uint32_t* low = &sums_[plane * corner[2] + row * corner[1] + corner[0]];
  const std::size_t y = row * sides[1];
  const auto area = [&](const std::uint32_t* at) {
    return at[y + sides[0]] - at[y] - at[sides[0]] + at[0];
  };
  return area(low + plane * sides[2]) - area(low);
}

std::uint32_t CuboidSearch::blocks(const Cuboid& cuboid) const {
  std::uint32_t blocks = 1;
  for (std::size_t d = 0; d < box_.sides.size(); ++d) {
    const std::uint32_t side = box_.block[d];
    const std::uint32_t last = cuboid.corner[d] + cuboid.sides[d] - 1;
    const std::uint32_t across = last / side - cuboid.corner[d] / side + 1;
    // A cuboid that wraps around may end in the block where it began.
    blocks *= std::min(across, box_.sides[d] / side);
  }
  return blocks;
}

std::uint32_t CuboidSearch::free_neighbours(const Cuboid& cuboid) const {
  std::uint32_t free = 0;
  for (std::size_t d = 0; d < box_.sides.size(); ++d) {
    const std::uint32_t side = box_.sides[d];
    if (cuboid.sides[d] == side) continue;
    Cuboid face = cuboid;
    face.sides[d] = 1;
    const std::uint32_t corner = cuboid.corner[d];
    if (corner > 0 || box_.closed[d]) {
      face.corner[d] = corner > 0 ? corner - 1 : side - 1;
      free += count(face);
    }
    const std::uint32_t end = corner + cuboid.sides[d];
    if (end < side || box_.closed[d]) {
      face.corner[d] = end < side ? end : end - side;
      free += count(face);
    }
  }
  return free;
}

template <class Visit>
void CuboidSearch::for_each_free(const Sides& sides, Visit&& visit) const {
  Sides corners;
  for (std::size_t d = 0; d < sides.size(); ++d) {
    if (sides[d] > box_.sides[d]) return;
    // A cuboid that fills a closed dimension has one position in it.
    const bool turns = box_.closed[d] && sides[d] < box_.sides[d];
    corners[d] = turns ? box_.sides[d] : box_.sides[d] - sides[d] + 1;
  }
  const std::uint32_t cells = volume(sides);
  Sides at;
  for (at[2] = 0; at[2] < corners[2]; ++at[2]) {
    for (at[1] = 0; at[1] < corners[1]; ++at[1]) {
      for (at[0] = 0; at[0] < corners[0]; ++at[0]) {
        if (count({at, sides}) == cells && !visit(at)) return;
      }
    }
  }
}

std::optional<Cuboid> CuboidSearch::tightest(const Sides& sides) const {
  using Score = std::array<std::uint32_t, 3>;
  std::optional<Cuboid> best;
  Score least{};
  for (const Sides& turned : orientations(sides)) {
    for_each_free(turned, [&](const Sides& corner) {
      const Cuboid cuboid{corner, turned};
      const Score score{blocks(cuboid), free_neighbours(cuboid), box_.index(corner)};
      if (!best || score < least) {
        best = cuboid;
        least = score;
      }
      return true;
    });
  }
  return best;
}

std::optional<Cuboid> CuboidSearch::first(const Sides& sides) const {
  std::optional<Cuboid> best;
  for (const Sides& turned : orientations(sides)) {
    for_each_free(turned, [&](const Sides& corner) {
      if (!best || box_.index(corner) < box_.index(best->corner)) best = Cuboid{corner, turned};
      return false;
    });
  }
  return best;
}

}  // namespace orrery

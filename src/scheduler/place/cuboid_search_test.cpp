// scheduler/place/cuboid_search_test.cpp - cuboids found are free, and one is found whenever there
// is one.
#include "scheduler/place/cuboid_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

using Cells = std::vector<std::uint8_t>;

constexpr std::array<bool, 3> kOpen{};
constexpr std::array<bool, 3> kClosed{true, true, true};

CuboidSearch search_of(const CellBox& box, const Cells& free) {
  CuboidSearch search(box);
  search.look_at(free);
  return search;
}

/// Reads the cells of a box: `.` is free, `#` is in use.
Cells cells_of(const CellBox& box, std::string_view rows) {
  Cells cells;
  for (const char c : rows) {
    if (c == '.' || c == '#') cells.push_back(c == '.' ? 1 : 0);
  }
  EXPECT_EQ(cells.size(), volume(box.sides));
  return cells;
}

std::vector<std::uint32_t> cells_in(const CellBox& box, const Cuboid& cuboid) {
  std::vector<std::uint32_t> cells;
  for_each_cell(box, cuboid, [&](std::uint32_t cell) { cells.push_back(cell); });
  return cells;
}

TEST(Cuboids, AreTurnedEachWayOnceAndFirstAsAsked) {
  EXPECT_EQ(orientations({2, 2, 2}), (std::vector<Sides>{{2, 2, 2}}));
  EXPECT_EQ(orientations({2, 1, 1}), (std::vector<Sides>{{2, 1, 1}, {1, 1, 2}, {1, 2, 1}}));
  EXPECT_EQ(orientations({3, 1, 2}).size(), 6U);
  EXPECT_EQ(orientations({3, 1, 2}).front(), (Sides{3, 1, 2}));
}

TEST(CuboidSearch, TakesTheCornerThatLeavesFewestFreeNeighbours) {
  const CellBox box{{6, 3, 1}, kOpen};
  const Cells cells = cells_of(box,
                               "......"
                               "..##.."
                               "....#.");
  const CuboidSearch search = search_of(box, cells);
  // All neighbours but one are in use or beyond the edge.
  EXPECT_EQ(search.tightest({1, 2, 1}), (Cuboid{{2, 2, 0}, {2, 1, 1}}));
  EXPECT_EQ(search.first({2, 1, 1}), (Cuboid{{0, 0, 0}, {2, 1, 1}}));
  EXPECT_EQ(search.free_cells(), 15U);
}

TEST(CuboidSearch, GoesRoundTheEndOfAClosedDimensionOnly) {
  const std::string_view rows = "..##..";
  const CellBox open{{6, 1, 1}, kOpen};
  EXPECT_EQ(search_of(open, cells_of(open, rows)).tightest({4, 1, 1}), std::nullopt);
  const CellBox closed{{6, 1, 1}, kClosed};
  EXPECT_EQ(search_of(closed, cells_of(closed, rows)).tightest({4, 1, 1}),
            (Cuboid{{4, 0, 0}, {4, 1, 1}}));
}

TEST(CuboidSearch, PutsTheFirstOfAnEmptyTorusAtItsOrigin) {
  const CellBox box{{4, 4, 4}, kClosed};
  const CuboidSearch search = search_of(box, Cells(64, 1));
  EXPECT_EQ(search.tightest({2, 4, 1}), (Cuboid{{}, {2, 4, 1}}));
  EXPECT_EQ(search.tightest({4, 4, 4}), (Cuboid{{}, {4, 4, 4}}));
  EXPECT_EQ(search.tightest({8, 1, 1}), std::nullopt);
}

/// Whether any cuboid is free, found by trying every corner and orientation, cell by cell.
bool any_cuboid(const CellBox& box, const Cells& cells, Sides sides) {
  std::sort(sides.begin(), sides.end());
  do {
    for (std::uint32_t corner = 0; corner < cells.size(); ++corner) {
      const Sides from{corner % box.sides[0], corner / box.sides[0] % box.sides[1],
                       corner / box.sides[0] / box.sides[1]};
      bool free = true;
      for (std::uint32_t i = 0; i < volume(sides) && free; ++i) {
        Sides at{i % sides[0], i / sides[0] % sides[1], i / sides[0] / sides[1]};
        for (std::size_t d = 0; d < 3; ++d) {
          at[d] += from[d];
          if (!box.closed[d]) free = free && at[d] < box.sides[d];
          free = free && sides[d] <= box.sides[d];
          at[d] %= box.sides[d];
        }
        free = free && cells[box.index(at)] != 0;
      }
      if (free) return true;
    }
  } while (std::next_permutation(sides.begin(), sides.end()));
  return false;
}

TEST(CuboidSearch, FindsAFreeCuboidWheneverThereIsOne) {
  Rng rng(11);
  int found = 0;
  int none = 0;
  for (int i = 0; i < 4000; ++i) {
    CellBox box;
    Sides sides;
    for (std::size_t d = 0; d < 3; ++d) {
      box.sides[d] = 1 + static_cast<std::uint32_t>(rng.below(d == 2 ? 3 : 6));
      box.closed[d] = rng.below(2) == 0;
      sides[d] = 1 + static_cast<std::uint32_t>(rng.below(4));
    }
    Cells cells(volume(box.sides));
    const std::uint64_t busy = rng.below(60);
    for (std::uint8_t& cell : cells) cell = rng.below(100) >= busy ? 1 : 0;
    const CuboidSearch search = search_of(box, cells);
    for (const std::optional<Cuboid>& cuboid : {search.tightest(sides), search.first(sides)}) {
      ASSERT_EQ(cuboid.has_value(), any_cuboid(box, cells, sides)) << i;
      if (!cuboid) continue;
      ASSERT_TRUE(std::is_permutation(sides.begin(), sides.end(), cuboid->sides.begin()));
      const std::vector<std::uint32_t> taken = cells_in(box, *cuboid);
      ASSERT_EQ(std::set(taken.begin(), taken.end()).size(), volume(sides));
      for (const std::uint32_t cell : taken) ASSERT_EQ(cells[cell], 1);
    }
    ++(search.first(sides) ? found : none);
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 500);
}

/// Free cells next to a cuboid, by looking at each of its cells' six neighbours.
std::uint32_t free_around(const CellBox& box, const Cells& cells, const Cuboid& cuboid) {
  const std::vector<std::uint32_t> inside = cells_in(box, cuboid);
  std::uint32_t free = 0;
  for (const std::uint32_t cell : inside) {
    const Sides at{cell % box.sides[0], cell / box.sides[0] % box.sides[1],
                   cell / box.sides[0] / box.sides[1]};
    for (std::size_t d = 0; d < 3; ++d) {
      for (const std::uint32_t step : {1U, box.sides[d] - 1}) {
        Sides next = at;
        next[d] = (at[d] + step) % box.sides[d];
        const bool over = step == 1 ? at[d] + 1 == box.sides[d] : at[d] == 0;
        if (over && !box.closed[d]) continue;
        const std::uint32_t neighbour = box.index(next);
        if (std::find(inside.begin(), inside.end(), neighbour) != inside.end()) continue;
        free += cells[neighbour];
      }
    }
  }
  return free;
}

TEST(CuboidSearch, ForgetsTheLastBox) {
  const CellBox box{{4, 2, 1}, {true, false, false}};
  CuboidSearch search(box);
  EXPECT_EQ(search.tightest({1, 1, 1}), std::nullopt);
  search.look_at(Cells(8, 1));
  search.look_at(Cells(8, 0));
  EXPECT_EQ(search.free_cells(), 0U);
  search.look_at(cells_of(box, "#..##..#"));
  EXPECT_EQ(search.tightest({2, 2, 1}), (Cuboid{{1, 0, 0}, {2, 2, 1}}));
}

TEST(CuboidSearch, FindsNoCuboidWithFewerFreeNeighboursThanTheTightest) {
  Rng rng(12);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    CellBox box{{5, 4, 3}, {rng.below(2) == 0, rng.below(2) == 0, rng.below(2) == 0}};
    Cells cells(volume(box.sides));
    for (std::uint8_t& cell : cells) cell = rng.below(4) > 0 ? 1 : 0;
    const Sides sides{2, 1, 2};
    const std::optional<Cuboid> best = search_of(box, cells).tightest(sides);
    if (!best) continue;
    const std::uint32_t least = free_around(box, cells, *best);
    for (const Sides& turned : orientations(sides)) {
      for (std::uint32_t corner = 0; corner < cells.size(); ++corner) {
        const Cuboid other{{corner % 5, corner / 5 % 4, corner / 20}, turned};
        bool fits = true;
        for (std::size_t d = 0; d < 3; ++d) {
          fits = fits && (box.closed[d] || other.corner[d] + turned[d] <= box.sides[d]);
        }
        if (!fits) continue;
        const std::vector<std::uint32_t> inside = cells_in(box, other);
        if (std::any_of(inside.begin(), inside.end(), [&](auto c) { return cells[c] == 0; })) {
          continue;
        }
        ASSERT_LE(least, free_around(box, cells, other)) << i;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace orrery

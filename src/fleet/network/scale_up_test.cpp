// fleet/network/scale_up_test.cpp - documented pods, and closed-form results compared with counting
// on the graph.
#include "fleet/network/scale_up.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

using Coordinates = TorusShape::Coordinates;
using Wrap = TorusShape::Wrap;
using Twist = TorusShape::Twist;
using Direction = TorusStep::Direction;

TorusShape torus(Coordinates dims) {
  TorusShape shape;
  shape.dims = dims;
  return shape;
}

TorusShape twisted(Coordinates dims) {
  TorusShape shape = torus(dims);
  shape.twist = Twist::kLongByHalf;
  return shape;
}

std::vector<Coordinates> all_coordinates(const TorusShape& shape) {
  std::vector<Coordinates> all;
  for (int x = 0; x < shape.dims[0]; ++x) {
    for (int y = 0; y < shape.dims[1]; ++y) {
      for (int z = 0; z < shape.dims[2]; ++z) all.push_back({x, y, z});
    }
  }
  return all;
}

/// Returns the links between a slab of half the length and the rest, the least over all positions
/// of the slab.
int count_cut(const TorusShape& shape, int dimension) {
  const auto axis = static_cast<std::size_t>(dimension);
  const int side = shape.dims[axis];
  int least = std::numeric_limits<int>::max();
  for (int begin = 0; begin < side; ++begin) {
    const auto inside = [&](const Coordinates& c) {
      return (c[axis] - begin + side) % side < side / 2;
    };
    int cut = 0;
    for (const Coordinates& from : all_coordinates(shape)) {
      for (int d = 0; d < TorusShape::kDimensions; ++d) {
        const auto to = neighbour(shape, from, {d, Direction::kUp});
        if (to && inside(from) != inside(*to)) ++cut;
      }
    }
    least = std::min(least, cut);
  }
  return least;
}

/// Returns the steps from `origin` to the farthest accelerator, by relaxing until nothing changes.
int count_reach(const TorusShape& shape, Coordinates origin) {
  const auto index = [&shape](const Coordinates& c) {
    return static_cast<std::size_t>((c[0] * shape.dims[1] + c[1]) * shape.dims[2] + c[2]);
  };
  const std::vector<Coordinates> all = all_coordinates(shape);
  std::vector<int> depth(all.size(), 1'000'000);
  depth[index(origin)] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Coordinates& from : all) {
      for (int d = 0; d < TorusShape::kDimensions; ++d) {
        for (const Direction direction : {Direction::kUp, Direction::kDown}) {
          const auto to = neighbour(shape, from, {d, direction});
          if (to && depth[index(*to)] > depth[index(from)] + 1) {
            depth[index(*to)] = depth[index(from)] + 1;
            changed = true;
          }
        }
      }
    }
  }
  return *std::ranges::max_element(depth);
}

int count_links(const TorusShape& shape, int dimension) {
  int links = 0;
  for (const Coordinates& from : all_coordinates(shape)) {
    if (neighbour(shape, from, {dimension, Direction::kUp})) ++links;
  }
  return links;
}

std::string text(const TorusShape& shape) {
  return fmt::format("{}x{}x{} open {}{}{} twist {}", shape.dims[0], shape.dims[1], shape.dims[2],
                     static_cast<int>(shape.wrap[0]), static_cast<int>(shape.wrap[1]),
                     static_cast<int>(shape.wrap[2]), static_cast<int>(shape.twist));
}

void expect_closed_forms_hold(const TorusShape& shape) {
  SCOPED_TRACE(text(shape));
  ASSERT_TRUE(check(shape).has_value());
  int least = std::numeric_limits<int>::max();
  int links = 0;
  for (int d = 0; d < TorusShape::kDimensions; ++d) {
    EXPECT_EQ(links_along(shape, d), count_links(shape, d));
    links += count_links(shape, d);
    if (shape.dims[static_cast<std::size_t>(d)] < 2) continue;
    EXPECT_EQ(cut_links(shape, d), count_cut(shape, d));
    least = std::min(least, count_cut(shape, d));
  }
  EXPECT_EQ(link_count(shape), links);
  EXPECT_EQ(bisection_links(shape), links == 0 ? 0 : least);
  EXPECT_EQ(diameter(shape), count_reach(shape, {0, 0, 0}));
}

TEST(Torus, HasTheBisectionOfTheDocumentedPods) {
  EXPECT_EQ(bisection_links(torus({16, 16, 1})) * BytesPerSecond(50e9), BytesPerSecond(1.6e12));
  EXPECT_EQ(bisection_links(torus({16, 16, 1})) * BytesPerSecond(100e9), BytesPerSecond(3.2e12));
  // The vendor prints 24 TB/s for a v4 pod of 4,096.
  EXPECT_EQ(bisection_links(torus({16, 16, 16})) * BytesPerSecond(50e9), BytesPerSecond(25.6e12));
  EXPECT_EQ(accelerator_count(torus({16, 16, 16})), 4096);
  EXPECT_EQ(diameter(torus({16, 16, 16})), 24);
  EXPECT_EQ(link_count(torus({16, 16, 16})), 3 * 4096);
}

TEST(Torus, OfLengthTwoHasParallelLinksAndOfLengthOneNone) {
  EXPECT_EQ(links_along(torus({2, 1, 1}), 0), 2);
  EXPECT_EQ(bisection_links(torus({2, 1, 1})), 2);
  EXPECT_EQ(neighbour(torus({2, 1, 1}), {0, 0, 0}, {0, Direction::kUp}), (Coordinates{1, 0, 0}));
  EXPECT_EQ(neighbour(torus({2, 1, 1}), {0, 0, 0}, {0, Direction::kDown}), (Coordinates{1, 0, 0}));
  EXPECT_EQ(neighbour(torus({2, 1, 1}), {0, 0, 0}, {1, Direction::kUp}), std::nullopt);
  EXPECT_EQ(bisection_links(torus({1, 1, 1})), 0);
  EXPECT_EQ(link_count(torus({1, 1, 1})), 0);
}

TEST(Torus, WithOpenEdgesHasNobodyBeyondThem) {
  TorusShape shape = torus({4, 8, 1});
  shape.wrap[0] = Wrap::kOpen;
  EXPECT_EQ(neighbour(shape, {3, 0, 0}, {0, Direction::kUp}), std::nullopt);
  EXPECT_EQ(neighbour(shape, {0, 0, 0}, {0, Direction::kDown}), std::nullopt);
  EXPECT_EQ(neighbour(shape, {0, 7, 0}, {1, Direction::kUp}), (Coordinates{0, 0, 0}));
  EXPECT_EQ(bisection_links(shape), 8);  // across the open side, not 2 * 4 across the closed one
  EXPECT_EQ(diameter(shape), 3 + 4);
}

TEST(Torus, CountsAsItsGraphForAllSmallShapes) {
  for (int x = 1; x <= 5; ++x) {
    for (int y = 1; y <= 4; ++y) {
      for (int z = 1; z <= 4; ++z) expect_closed_forms_hold(torus({x, y, z}));
    }
  }
}

TEST(Torus, CountsAsItsGraphForRandomShapesAndEdges) {
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    TorusShape shape;
    for (int& side : shape.dims) side = 1 + static_cast<int>(rng.below(7));
    for (Wrap& wrap : shape.wrap) wrap = rng.below(2) == 0 ? Wrap::kOpen : Wrap::kClosed;
    expect_closed_forms_hold(shape);
  }
}

TEST(TwistedTorus, CountsAsItsGraph) {
  for (const int n : {2, 3, 4, 5}) {
    for (const Coordinates& dims : {Coordinates{n, n, 2 * n}, Coordinates{2 * n, n, n},
                                    Coordinates{n, 2 * n, 2 * n}, Coordinates{2 * n, n, 2 * n}}) {
      expect_closed_forms_hold(twisted(dims));
    }
  }
}

TEST(TwistedTorus, DoublesTheBisectionAndShortensTheDiameter) {
  for (const Coordinates& dims : {Coordinates{4, 4, 8}, Coordinates{4, 8, 8}}) {
    EXPECT_EQ(bisection_links(twisted(dims)), 2 * bisection_links(torus(dims)));
    EXPECT_LT(diameter(twisted(dims)), diameter(torus(dims)));
  }
}

TEST(TwistedTorus, LooksTheSameFromEverywhere) {
  for (const TorusShape& shape : {twisted({2, 2, 4}), twisted({3, 6, 6})}) {
    for (const Coordinates& from : all_coordinates(shape)) {
      EXPECT_EQ(count_reach(shape, from), diameter(shape));
    }
  }
}

TEST(TwistedTorus, MovesTheLongDimensionsByHalfWhereAShortOneWraps) {
  EXPECT_EQ(neighbour(twisted({4, 4, 8}), {3, 2, 1}, {0, Direction::kUp}), (Coordinates{0, 2, 5}));
  EXPECT_EQ(neighbour(twisted({4, 4, 8}), {1, 0, 6}, {1, Direction::kDown}),
            (Coordinates{1, 3, 2}));
  EXPECT_EQ(neighbour(twisted({4, 4, 8}), {1, 0, 7}, {2, Direction::kUp}), (Coordinates{1, 0, 0}));
  EXPECT_EQ(neighbour(twisted({4, 8, 8}), {3, 1, 6}, {0, Direction::kUp}), (Coordinates{0, 5, 2}));
}

TEST(Torus, EveryStepUpIsUndoneByAStepDown) {
  TorusShape open = torus({3, 4, 5});
  open.wrap[1] = Wrap::kOpen;
  for (const TorusShape& shape : {torus({2, 3, 4}), open, twisted({2, 2, 4}), twisted({4, 8, 8})}) {
    for (const Coordinates& from : all_coordinates(shape)) {
      for (int d = 0; d < TorusShape::kDimensions; ++d) {
        const auto up = neighbour(shape, from, {d, Direction::kUp});
        if (up) {
          EXPECT_EQ(neighbour(shape, *up, {d, Direction::kDown}), from);
        }
        const auto down = neighbour(shape, from, {d, Direction::kDown});
        if (down) {
          EXPECT_EQ(neighbour(shape, *down, {d, Direction::kUp}), from);
        }
      }
    }
  }
}

TEST(SwitchedDomain, CrossesWithHalfOfItsLinks) {
  const SwitchedShape rack{.accelerators = 72, .links_per_accelerator = 18, .switch_ports = 72};
  EXPECT_EQ(link_count(rack), 1296);
  EXPECT_EQ(bisection_links(rack), 648);
  EXPECT_EQ(diameter(rack), 2);
}

TEST(FullMesh, SharesItsLinksAmongThePeers) {
  const FullMeshShape mesh{.accelerators = 8, .links_per_accelerator = 7};
  EXPECT_EQ(link_count(mesh), 28);
  EXPECT_EQ(links_per_pair(mesh), 1);
  EXPECT_EQ(bisection_links(mesh), 16);
  EXPECT_EQ(diameter(mesh), 1);
  const FullMeshShape odd{.accelerators = 5, .links_per_accelerator = 6};
  EXPECT_DOUBLE_EQ(links_per_pair(odd), 1.5);
  EXPECT_DOUBLE_EQ(bisection_links(odd), 2 * 3 * 1.5);
  EXPECT_EQ(bisection_links(FullMeshShape{.accelerators = 1, .links_per_accelerator = 4}), 0);
}

TEST(Bridge, OfFourGivesEachPeerAThird) {
  const BridgeShape bridge{.accelerators = 4, .links_per_accelerator = 18};
  EXPECT_EQ(link_count(bridge), 36);
  EXPECT_EQ(bisection_links(bridge), 24);
  EXPECT_EQ(diameter(bridge), 1);
}

TEST(Ring, IsATorusOfOneDimensionWithParallelLinks) {
  for (int n = 1; n <= 9; ++n) {
    const RingShape ring{.accelerators = n, .links_per_accelerator = 6};
    EXPECT_EQ(link_count(ring), 3 * link_count(torus({n, 1, 1})));
    EXPECT_EQ(bisection_links(ring), 3 * bisection_links(torus({n, 1, 1})));
    EXPECT_EQ(diameter(ring), diameter(torus({n, 1, 1})));
    EXPECT_EQ(accelerator_count(ring), n);
  }
}

std::string problem(const ScaleUpShape& shape) {
  const Status status = check(shape);
  return status ? "" : status.error().message;
}

TEST(ScaleUp, SaysWhatCannotBeBuilt) {
  EXPECT_EQ(problem(SwitchedShape{72, 18, 72}), "");
  EXPECT_EQ(problem(SwitchedShape{73, 18, 72}),
            "a scale-up switch of 72 ports does not reach 73 accelerators");
  EXPECT_EQ(problem(FullMeshShape{0, 7}), "a scale-up domain has 1 to 1048576 accelerators, not 0");
  EXPECT_EQ(problem(FullMeshShape{8, 0}), "an accelerator has 1 to 1024 scale-up links, not 0");
  EXPECT_EQ(problem(RingShape{8, 3}),
            "a ring needs an even number of links per accelerator, not 3");
  EXPECT_EQ(problem(BridgeShape{5, 4}), "a bridge joins at most 4 accelerators, not 5");
  EXPECT_EQ(problem(torus({4, 0, 4})), "a torus has 1 to 1048576 accelerators; 4x0x4 has not");
  EXPECT_EQ(problem(torus({2'000'000'000, 2'000'000'000, 4})),
            "a torus has 1 to 1048576 accelerators; 2000000000x2000000000x4 has not");
  for (const Coordinates& dims : {Coordinates{4, 4, 4}, Coordinates{4, 4, 12}, Coordinates{1, 1, 2},
                                  Coordinates{4, 6, 8}, Coordinates{1, 2, 2}}) {
    EXPECT_NE(problem(twisted(dims)).find("a twisted torus is"), std::string::npos);
  }
  TorusShape open = twisted({4, 4, 8});
  EXPECT_EQ(problem(open), "");
  open.wrap[1] = Wrap::kOpen;
  EXPECT_NE(problem(open), "");
  TorusShape cubes = torus({8, 8, 6});
  cubes.cube = {4, 4, 4};
  EXPECT_EQ(problem(cubes), "a torus of 8x8x6 does not consist of cubes of 4x4x4");
}

TEST(ScaleUpDeathTest, MisuseEndsTheProcess) {
  EXPECT_DEATH(static_cast<void>(neighbour(torus({2, 2, 2}), {2, 0, 0}, {})), "inside the torus");
  EXPECT_DEATH(static_cast<void>(cut_links(torus({2, 1, 1}), 1)), "cannot be cut");
}

}  // namespace
}  // namespace orrery

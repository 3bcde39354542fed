#include "fleet/network/torus_blocks.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

using Sides = std::vector<int>;

TEST(TorusBlocks, AreTheOnesThatVendorsBuild) {
  EXPECT_EQ(torus_of_blocks(64, {4, 4, 4}), (Sides{16, 16, 16}));   // TPU v4
  EXPECT_EQ(torus_of_blocks(140, {4, 4, 4}), (Sides{16, 20, 28}));  // TPU v5p
  EXPECT_EQ(torus_of_blocks(32, {2, 4}), (Sides{16, 16}));          // TPU v5e
  EXPECT_EQ(torus_of_blocks(4, {4, 4, 1}), (Sides{4, 4, 4}));       // Trainium2 UltraServer
}

TEST(TorusBlocks, HoldEveryBlockOnceAndTileByThem) {
  for (const Sides& block : {Sides{2, 2, 1}, Sides{4, 4, 4}, Sides{2, 4}, Sides{1, 1, 1}}) {
    for (int blocks = 1; blocks <= 200; ++blocks) {
      const Sides sides = torus_of_blocks(blocks, block);
      ASSERT_EQ(sides.size(), block.size());
      int count = 1;
      for (std::size_t i = 0; i < sides.size(); ++i) {
        EXPECT_EQ(sides[i] % block[i], 0);
        count *= sides[i] / block[i];
      }
      EXPECT_EQ(count, blocks);
    }
  }
}

TEST(TorusBlocks, OfAPrimeNumberAreALine) {
  EXPECT_EQ(torus_of_blocks(7, {1, 1, 1}), (Sides{1, 1, 7}));
  EXPECT_EQ(torus_of_blocks(7, {2, 2}), (Sides{2, 14}));
}

}  // namespace
}  // namespace orrery

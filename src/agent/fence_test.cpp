#include "agent/fence.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr JobId kJob{3};

TEST(Fence, RefusesAnOlderAttemptAndAnOlderEpochOfTheSame) {
  Fence fence(kJob);
  EXPECT_TRUE(fence.admit({{kJob, 1}, 0}));
  EXPECT_TRUE(fence.admit({{kJob, 1}, 2}));
  EXPECT_FALSE(fence.admit({{kJob, 1}, 1}));
  EXPECT_TRUE(fence.admit({{kJob, 2}, 0})) << "epochs begin anew in an attempt";
  EXPECT_FALSE(fence.admit({{kJob, 1}, 7}));
  EXPECT_TRUE(fence.admit({{kJob, 2}, 0}));
}

TEST(Fence, KnowsItsJobAlone) {
  Fence fence(kJob);
  EXPECT_FALSE(fence.admit({{JobId(4), 9}, 9}));
  EXPECT_EQ(fence.newest(), (FenceToken{{kJob, 0}, 0}));
}

TEST(Fence, GoesOnFromTheTokenKeptWithWhatItGuards) {
  Fence fence(FenceToken{{kJob, 5}, 1});
  EXPECT_FALSE(fence.admit({{kJob, 5}, 0}));
  EXPECT_TRUE(fence.admit({{kJob, 5}, 1}));
}

TEST(Fence, WhatItAdmitsNeverGoesBack) {
  Rng rng(1);
  Fence fence(kJob);
  FenceToken last = fence.newest();
  for (int i = 0; i < 1000; ++i) {
    const FenceToken token{{kJob, static_cast<std::uint32_t>(rng.below(20))},
                           static_cast<std::uint32_t>(rng.below(5))};
    EXPECT_EQ(fence.admit(token), token >= last);
    last = std::max(last, token);
  }
}

}  // namespace
}  // namespace orrery

#include "store/etcd_size/log_sizes.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(LogSizes, WhatIsReplacedOrDroppedCountsNoMore) {
  LogSizes sizes;
  sizes.put_batch(1, 100);
  sizes.put_batch(2, 200);
  sizes.put_snapshot(1, 1'000);
  sizes.put_text("policy", 10);
  EXPECT_EQ(sizes.bytes(), 1'310u);
  sizes.put_text("policy", 30);
  EXPECT_EQ(sizes.bytes(), 1'330u);
  sizes.put_snapshot(2, 2'000);
  sizes.drop(2);
  EXPECT_EQ(sizes.bytes(), 2'030u) << "the snapshot that covers them stays";
  sizes.clear();
  EXPECT_EQ(sizes.bytes(), 0u);
}

TEST(LogSizes, ASurveyAddsOnlyWhatTheWriterDidNotWriteOrDrop) {
  LogSizes sizes;
  sizes.put_text("policy", 30);
  sizes.put_batch(9, 900);
  sizes.drop(4);
  for (std::uint64_t number = 3; number <= 9; ++number) sizes.found_batch(number, 1);
  sizes.found_snapshot(3, 1'000);
  sizes.found_snapshot(4, 2'000);
  sizes.found_text("policy", 7);
  sizes.found_text("fleet", 5);
  EXPECT_EQ(sizes.bytes(), 30u + 900u + 4u + 2'000u + 5u);
}

}  // namespace
}  // namespace orrery

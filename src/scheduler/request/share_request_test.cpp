#include "scheduler/request/share_request.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

ShareNode node_of(std::initializer_list<int> free) {
  ShareNode node{.cpu_free = 8000, .memory_free = 100, .type = 2};
  for (const int thousandths : free) {
    node.device_free[static_cast<std::size_t>(node.devices++)] =
        static_cast<std::int16_t>(thousandths);
  }
  return node;
}

TEST(ShareRequest, FitsWhereCpuMemoryAndEnoughDevicesAreLeft) {
  const ShareNode node = node_of({300, 1000, 600});
  EXPECT_TRUE(fits(node, {.cpu = 8000, .memory = 100, .devices = 2, .thousandths = 600}));
  EXPECT_FALSE(fits(node, {.cpu = 8001, .devices = 1, .thousandths = 1}));
  EXPECT_FALSE(fits(node, {.memory = 101, .devices = 1, .thousandths = 1}));
  EXPECT_FALSE(fits(node, {.devices = 3, .thousandths = 301}));
  EXPECT_FALSE(fits(node, {.devices = 2, .thousandths = kDeviceThousandths}));
}

TEST(ShareRequest, FitsOnlyOnTheTypesItAllows) {
  const ShareNode node = node_of({1000});
  EXPECT_TRUE(fits(node, {.devices = 1, .thousandths = 500, .types = 0b100}));
  EXPECT_FALSE(fits(node, {.devices = 1, .thousandths = 500, .types = 0b011}));
}

TEST(ShareRequest, WithoutDevicesAnyTypeWillDo) {
  EXPECT_TRUE(fits(node_of({}), {.cpu = 1000, .types = 0}));
}

TEST(ShareRequest, TheTightestDevicesComeFirstAndTheLowestOfEqualOnes) {
  const ShareNode node = node_of({1000, 400, 700, 400});
  EXPECT_EQ(tightest_devices(node, {.devices = 1, .thousandths = 300}), 0b0010);
  EXPECT_EQ(tightest_devices(node, {.devices = 1, .thousandths = 500}), 0b0100);
  EXPECT_EQ(tightest_devices(node, {.devices = 3, .thousandths = 300}), 0b1110);
  EXPECT_EQ(tightest_devices(node, {.cpu = 1}), 0);
}

TEST(ShareRequest, WhatIsTakenAndGivenBackLeavesTheNodeAsItWas) {
  const ShareNode before = node_of({1000, 400, 700});
  const ShareRequest request{.cpu = 500, .memory = 7, .devices = 2, .thousandths = 350};
  ShareNode node = before;
  take(node, request, 0b110);
  EXPECT_EQ(node.device_free[1], 50);
  EXPECT_EQ(node.device_free[2], 350);
  EXPECT_EQ(node.free_thousandths(), 1400);
  EXPECT_EQ(node.cpu_free, 7500);
  EXPECT_EQ(node.memory_free, 93);
  give_back(node, request, 0b110);
  EXPECT_EQ(node, before);
}

}  // namespace
}  // namespace orrery

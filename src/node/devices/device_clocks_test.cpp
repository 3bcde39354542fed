// node/devices/device_clocks_test.cpp - which clock a device is asked for as attempts come, change
// and go.
#include "node/devices/device_clocks.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

using Changes = std::vector<std::pair<std::uint32_t, double>>;

const AttemptId kFirst{JobId(1), 1};
const AttemptId kSecond{JobId(2), 1};

/// Asks for what is wanted; the driver does it, or refuses with `refusal`.
Changes settle(DeviceClocks& clocks, const std::string& refusal = "") {
  Changes changes;
  for (const DeviceClocks::Change& each : clocks.take_changes()) {
    changes.emplace_back(each.device, each.clock);
    clocks.note(each, refusal);
  }
  return changes;
}

std::vector<RankShare> share(std::uint64_t devices, double clock) {
  return {{.gang = 0, .devices = devices, .ranks = {}, .clock = clock}};
}

TEST(DeviceClocks, TheLowestOfThoseOnADeviceCountsAndGoesWithThem) {
  DeviceClocks clocks(3, "");
  clocks.want(kFirst, share(0b011, 0.8));
  EXPECT_EQ(settle(clocks), (Changes{{0, 0.8}, {1, 0.8}}));
  clocks.want(kSecond, share(0b110, 0.6));
  EXPECT_EQ(settle(clocks), (Changes{{1, 0.6}, {2, 0.6}}));
  EXPECT_EQ(clocks.held(kFirst), std::vector<double>{0.8}) << "as ordered, and lower for another";
  EXPECT_EQ(settle(clocks), Changes{}) << "each is asked for once";
  clocks.forget(kSecond);
  EXPECT_EQ(settle(clocks), (Changes{{1, 0.8}, {2, 1}}));
  EXPECT_EQ(clocks.text(), "0 0.8\n1 0.8\n");
}

TEST(DeviceClocks, WhatIsRefusedIsNotHeldAndIsAskedForAgainWithTheNextOrder) {
  DeviceClocks clocks(2, "");
  clocks.want(kFirst, share(0b11, 0.5));
  EXPECT_EQ(settle(clocks, "no rights").size(), 2u);
  EXPECT_EQ(clocks.held(kFirst), std::vector<double>{1});
  EXPECT_EQ(clocks.refusal(), "no rights");
  EXPECT_EQ(settle(clocks), Changes{});
  clocks.want(kFirst, share(0b11, 0.5));
  EXPECT_EQ(settle(clocks), (Changes{{0, 0.5}, {1, 0.5}}));
  EXPECT_EQ(clocks.held(kFirst), std::vector<double>{0.5});
  EXPECT_EQ(clocks.refusal(), "");
  // A device whose clock is the wanted one is no failure, though the driver refuses.
  clocks.want(kSecond, share(0b10, 0.4));
  EXPECT_EQ(settle(clocks, "no rights"), (Changes{{1, 0.4}}));
  clocks.forget(kSecond);
  EXPECT_EQ(settle(clocks, "no rights"), (Changes{{1, 0.5}}));
  EXPECT_EQ(clocks.refusal(), "");
}

TEST(DeviceClocks, AnAgentThatComesLaterLiftsWhatNobodyCanWantAndLeavesWhatSomebodyMay) {
  DeviceClocks clocks(4, "0 0.7\n2 0.5\n9 0.1\n1 x");
  clocks.adopt(kFirst);
  EXPECT_EQ(settle(clocks), Changes{});
  EXPECT_TRUE(clocks.held(kFirst).empty()) << "not known, so the controller says it again";
  clocks.want(kSecond, share(0b100, 1));
  EXPECT_EQ(settle(clocks), (Changes{{2, 1}})) << "who is known to be there decides";
  clocks.want(kFirst, share(0b1000, 1));
  EXPECT_EQ(settle(clocks), (Changes{{0, 1}}));
  EXPECT_EQ(clocks.text(), "");
}

TEST(DeviceClocks, WithoutADriverNoClockIsHeldAndThatIsSaid) {
  DeviceClocks clocks(0, "");
  clocks.want(kFirst, share(0b1, 1));
  EXPECT_EQ(clocks.refusal(), "");
  clocks.want(kFirst, share(0b1, 0.9));
  EXPECT_EQ(clocks.held(kFirst), std::vector<double>{1});
  EXPECT_EQ(clocks.refusal(), "no driver here sets the clock of its accelerators");
}

}  // namespace
}  // namespace orrery

#include "scheduler/plans/typical_requests.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(TypicalRequests, OfNothingAreEmptyAndWholeDevicesKeepTheirWorth) {
  const TypicalRequests typical = TypicalRequests::make({});
  EXPECT_TRUE(typical.common().empty());
  EXPECT_TRUE(typical.hosts().empty());
  EXPECT_EQ(typical.worth(kDeviceThousandths), 1);
}

TEST(TypicalRequests, CommonKindsCoverNineteenOfTwentyMostFrequentFirst) {
  std::vector<ShareRequest> requests(80, {.cpu = 1000, .devices = 1, .thousandths = 500});
  requests.insert(requests.end(), 16, {.cpu = 2000});
  requests.insert(requests.end(), 4,
                  {.cpu = 3000, .devices = 8, .thousandths = kDeviceThousandths});
  const TypicalRequests typical = TypicalRequests::make(requests);
  ASSERT_EQ(typical.common().size(), 2);
  EXPECT_EQ(typical.common()[0].thousandths, 500);
  EXPECT_DOUBLE_EQ(typical.common()[0].frequency, 80.0 / 96);
  EXPECT_EQ(typical.common()[1].cpu, 2000);
}

TEST(TypicalRequests, MemoryDoesNotSplitACommonKind) {
  const std::vector<ShareRequest> requests = {{.memory = 1, .devices = 1, .thousandths = 500},
                                              {.memory = 2, .devices = 1, .thousandths = 500}};
  EXPECT_EQ(TypicalRequests::make(requests).common().size(), 1);
}

TEST(TypicalRequests, HostsAreWeighedByTheWorthTheyAskFor) {
  const std::vector<ShareRequest> requests = {
      {.cpu = 9000},
      {.cpu = 6000, .memory = 60, .devices = 1, .thousandths = kDeviceThousandths},
      {.cpu = 6000, .memory = 30, .devices = 3, .thousandths = kDeviceThousandths}};
  const TypicalRequests typical = TypicalRequests::make(requests);
  ASSERT_EQ(typical.hosts().size(), 2);
  EXPECT_DOUBLE_EQ(typical.hosts()[0].cpu_per_worth, 2000);
  EXPECT_DOUBLE_EQ(typical.hosts()[0].memory_per_worth, 10);
  EXPECT_DOUBLE_EQ(typical.hosts()[0].share, 0.75);
  EXPECT_DOUBLE_EQ(typical.hosts()[1].cpu_per_worth, 6000);
}

TEST(TypicalRequests, APartIsWorthHalfByItsPriceAndHalfByItsAmount) {
  const std::vector<ShareRequest> requests(5, {.devices = 1, .thousandths = 400});
  const TypicalRequests typical = TypicalRequests::make(requests);
  EXPECT_DOUBLE_EQ(typical.worth(300), 0.15);
  EXPECT_DOUBLE_EQ(typical.worth(400), 0.45);
}

}  // namespace
}  // namespace orrery

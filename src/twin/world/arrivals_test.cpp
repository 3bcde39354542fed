#include "twin/world/arrivals.hpp"

#include <gtest/gtest.h>

#include "twin/faults/failure_test.hpp"

namespace orrery {
namespace {

constexpr FleetTypeId kType(0);

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }

TEST(Arrivals, NodesComeEvenlyFromTheFirstToTheLast) {
  const Topology fleet = built(racks_of_h100(1));
  const Delivery delivery{kType, Duration::seconds(10), Duration::seconds(30)};
  EXPECT_EQ(arrivals_of(fleet, std::vector{delivery}, at(100)),
            (std::vector{at(110), at(120), at(130), at(140)}));
}

TEST(Arrivals, WithoutADeliveryAllNodesAreThere) {
  const Topology fleet = built(racks_of_h100(1));
  EXPECT_EQ(arrivals_of(fleet, {}, at(100)), std::vector(4, at(100)));
  EXPECT_TRUE(arrival_commands(std::vector(4, at(100)), at(100)).empty());
}

TEST(Arrivals, TheLaterOfTwoDeliveriesHolds) {
  const Topology fleet = built(racks_of_h100(1));
  const Delivery first{kType, Duration::seconds(10), Duration()};
  const Delivery never{kType, Duration::max(), Duration()};
  EXPECT_EQ(arrivals_of(fleet, std::vector{first, never}, at(0)), std::vector(4, Instant::max()));
  EXPECT_EQ(arrivals_of(fleet, std::vector{never, first}, at(0)), std::vector(4, at(10)));
}

TEST(ArrivalCommands, DrainMissingNodesAtOnceAndResumeThemByTime) {
  const std::vector<Input> commands =
      arrival_commands(std::vector{at(0), at(20), at(10), Instant::max()}, at(0));
  ASSERT_EQ(commands.size(), 5U);
  for (std::uint32_t node = 1; node <= 3; ++node) {
    const Input& drain = commands[node - 1];
    EXPECT_EQ(drain.at, at(0));
    EXPECT_EQ(std::get<DrainNode>(drain.what).node, NodeId(node));
  }
  EXPECT_EQ(commands[3].at, at(10));
  EXPECT_EQ(std::get<ResumeNode>(commands[3].what).node, NodeId(2));
  EXPECT_EQ(commands[4].at, at(20));
  EXPECT_EQ(std::get<ResumeNode>(commands[4].what).node, NodeId(1));
}

}  // namespace
}  // namespace orrery

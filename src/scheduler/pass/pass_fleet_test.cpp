#include "scheduler/pass/pass_fleet.hpp"

#include <gtest/gtest.h>

#include <array>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kNodeFree = 0xff;

/// All devices of a node of eight.
PlacedGang whole_node(std::uint32_t node) {
  PlacedGang gang;
  gang.allocation.ranks.push_back({NodeId(node), kNodeFree});
  return gang;
}

std::uint64_t free_on(const FleetView& view, std::uint32_t node) {
  return view.node(NodeId(node)).free_mask;
}

class PassFleetTest : public testing::Test {
 protected:
  PassFleetTest() { fleet_.begin(cluster_.fleet().view()); }

  void start(std::uint32_t node) {
    const std::array<PlacedGang, 1> gangs{whole_node(node)};
    fleet_.start(cluster_.now(), gangs, Duration::hours(1));
  }

  TestCluster cluster_;
  PassFleet fleet_;
};

TEST_F(PassFleetTest, AStartTakesDevicesOfThePassAlone) {
  start(0);
  EXPECT_EQ(free_on(fleet_.now(), 0), 0u);
  EXPECT_EQ(free_on(fleet_.now(), 1), kNodeFree);
  EXPECT_EQ(free_on(cluster_.fleet().view(), 0), kNodeFree);
}

TEST_F(PassFleetTest, AStartIsSeenBesideReservationsToo) {
  fleet_.edit_reserved().add({JobId(9), cluster_.now() + Duration::hours(1), {whole_node(1)}});
  start(0);
  const FleetView shadow = fleet_.reserved().shadow();
  EXPECT_EQ(free_on(shadow, 0), 0u) << "started";
  EXPECT_EQ(free_on(shadow, 1), 0u) << "reserved";
  EXPECT_EQ(free_on(shadow, 2), kNodeFree);
  EXPECT_EQ(free_on(fleet_.now(), 1), kNodeFree);
}

TEST_F(PassFleetTest, AStartIsSeenInTheFutureToo) {
  EXPECT_EQ(fleet_.timeline(), nullptr);
  const std::array<Reservation, 1> earlier{{{JobId(9), cluster_.now(), {whole_node(2)}}}};
  fleet_.open_timeline(cluster_.situation(), earlier);
  start(0);
  ASSERT_NE(fleet_.timeline(), nullptr);
  const FleetView soon = fleet_.timeline()->shadow(cluster_.now() + Duration::minutes(1));
  EXPECT_EQ(free_on(soon, 0), 0u) << "started";
  EXPECT_EQ(free_on(soon, 1), kNodeFree);
  EXPECT_EQ(free_on(soon, 2), 0u) << "reserved";
}

TEST_F(PassFleetTest, DevicesKeptFromOthersAreHiddenUntilTheNextPass) {
  EXPECT_FALSE(fleet_.hides());
  fleet_.keep_from_others(whole_node(3));
  EXPECT_TRUE(fleet_.hides());
  EXPECT_EQ(free_on(fleet_.now(), 3), 0u);
  fleet_.begin(cluster_.fleet().view());
  EXPECT_FALSE(fleet_.hides());
  EXPECT_EQ(free_on(fleet_.now(), 3), kNodeFree);
}

TEST_F(PassFleetTest, ABeginEndsReservationsAndTheTimeline) {
  fleet_.edit_reserved().add({JobId(9), cluster_.now(), {whole_node(1)}});
  fleet_.open_timeline(cluster_.situation(), {});
  fleet_.begin(cluster_.fleet().view());
  EXPECT_FALSE(fleet_.reserved().any());
  EXPECT_EQ(fleet_.timeline(), nullptr);
}

TEST_F(PassFleetTest, EveryEditAndEveryBeginIsCounted) {
  std::uint64_t edits = fleet_.edits();
  (void)fleet_.now();
  (void)fleet_.reserved().any();
  EXPECT_EQ(fleet_.edits(), edits);
  start(0);
  EXPECT_GT(fleet_.edits(), edits);
  edits = fleet_.edits();
  fleet_.keep_from_others(whole_node(1));
  EXPECT_GT(fleet_.edits(), edits);
  edits = fleet_.edits();
  fleet_.edit_reserved().add({JobId(9), cluster_.now(), {whole_node(2)}});
  EXPECT_GT(fleet_.edits(), edits);
  edits = fleet_.edits();
  fleet_.begin(cluster_.fleet().view());
  EXPECT_GT(fleet_.edits(), edits);
}

}  // namespace
}  // namespace orrery

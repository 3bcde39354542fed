#include "scheduler/forecast/reserved.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant::from_ns(seconds * 1'000'000'000); }

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: sixteen
sites:
- name: site
  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - count: 4
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
)";

/// The devices that reservations keep, counted device by device.
FreeCount kept_by_hand(const FleetView& fleet, std::span<const Reservation> slots, Instant end) {
  std::set<std::pair<NodeId, int>> devices;
  std::set<NodeId> nodes;
  for (const Reservation& slot : slots) {
    if (slot.start >= end) continue;
    for (const NodeDevices& node : slot.gangs.front().allocation.ranks) {
      for (int device = 0; device < 8; ++device) {
        const std::uint64_t bit = std::uint64_t{1} << device;
        if ((node.devices & fleet.node(node.node).free_mask & bit) == 0) continue;
        devices.insert({node.node, device});
        if (fleet.node(node.node).available() == 8) nodes.insert(node.node);
      }
    }
  }
  return {static_cast<std::uint32_t>(devices.size()), static_cast<std::uint32_t>(nodes.size())};
}

class ReservedTest : public testing::Test {
 protected:
  ReservedTest() : topology_(built(kFleet)), fleet_(topology_) {}

  Reservation slot(Rng& rng, std::uint32_t job) {
    Reservation slot{JobId(job), at(static_cast<std::int64_t>(rng.below(10))), {}, 0};
    PlacedGang& gang = slot.gangs.emplace_back();
    for (std::uint32_t node = 0; node < 16; ++node) {
      if (rng.below(3) == 0) gang.allocation.ranks.push_back({NodeId(node), 1 + rng.below(255)});
    }
    return slot;
  }

  Topology topology_;
  Fleet fleet_;
};

TEST_F(ReservedTest, CountsWhatSlotsKeepAsCountedByHand) {
  Rng rng = Rng::stream(1, "reserved");
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t node = 0; node < 16; ++node) {
      NodeState state = fleet_.view().node(NodeId(node));
      state.free_mask = rng.below(2) == 0 ? 0xff : rng.below(256);
      state.health = rng.below(8) == 0 ? NodeHealth::kLost : NodeHealth::kReady;
      fleet_.set_node(NodeId(node), state);
    }
    std::vector<Reservation> slots;
    Reserved reserved(fleet_.view());
    reserved.reset(fleet_.view());
    for (std::uint32_t job = 0; job < 6; ++job) {
      slots.push_back(slot(rng, job));
      reserved.add(slots.back());
      for (std::int64_t second = 0; second < 11; ++second) {
        const FreeCount kept = reserved.kept(FleetTypeId(0), at(second));
        std::vector<Reservation> ready = slots;
        for (Reservation& one : ready) {
          std::erase_if(one.gangs.front().allocation.ranks, [&](const NodeDevices& node) {
            return fleet_.view().node(node.node).health != NodeHealth::kReady;
          });
        }
        ASSERT_EQ(kept, kept_by_hand(fleet_.view(), ready, at(second))) << "round " << round;
      }
    }
  }
}

TEST_F(ReservedTest, AJobWithoutAnEndMayBeOnNodesThatAreLentForATime) {
  Reserved reserved(fleet_.view());
  reserved.reset(fleet_.view());
  const NodeDevices lent{NodeId(3), 0xff};
  reserved.close({.nodes = {lent}, .from = at(5), .to = Instant::max(), .loan = true});
  const PlacedGang there{.allocation = {.ranks = {lent}}};
  const auto free_for = [&](Instant end) {
    return reserved.beside(fleet_.view(), JobId(0), end).node(NodeId(3)).free_mask;
  };
  EXPECT_EQ(free_for(at(5)), 0xffu);
  EXPECT_EQ(free_for(at(6)), 0u);
  EXPECT_EQ(free_for(Instant::max()), 0xffu);
  EXPECT_TRUE(reserved.delays({&there, 1}, at(6), JobId(0)));
  EXPECT_FALSE(reserved.delays({&there, 1}, Instant::max(), JobId(0)));
  EXPECT_EQ(reserved.kept(FleetTypeId(0), at(6)).nodes, 1u);
  EXPECT_EQ(reserved.kept(FleetTypeId(0), Instant::max()).nodes, 0u);
  reserved.close({.nodes = {lent}, .from = at(7), .to = at(9)});
  EXPECT_EQ(free_for(Instant::max()), 0u) << "a window is for all";
}

TEST_F(ReservedTest, TheShadowIsTheSameWheneverItIsMade) {
  Rng rng = Rng::stream(2, "reserved");
  Reserved early(fleet_.view());
  Reserved late(fleet_.view());
  early.reset(fleet_.view());
  late.reset(fleet_.view());
  (void)early.shadow();
  for (std::uint32_t job = 0; job < 4; ++job) {
    const Reservation one = slot(rng, job);
    early.add(one);
    late.add(one);
  }
  for (std::uint32_t node = 0; node < 16; ++node) {
    EXPECT_EQ(early.shadow().node(NodeId(node)), late.shadow().node(NodeId(node)));
  }
  EXPECT_TRUE(late.shows(late.shadow()));
  EXPECT_FALSE(late.shows(fleet_.view()));
}

TEST_F(ReservedTest, BesideOneIsWhatNobodyElseKeepsBeforeAnEnd) {
  Rng rng = Rng::stream(3, "reserved");
  Reserved reserved(fleet_.view());
  reserved.reset(fleet_.view());
  std::vector<Reservation> slots;
  for (std::uint32_t job = 0; job < 5; ++job) {
    slots.push_back(slot(rng, job));
    reserved.add(slots.back());
    for (std::uint32_t of = 0; of < 6; ++of) {
      for (std::int64_t second = 0; second < 11; ++second) {
        std::vector<Reservation> others = slots;
        std::erase_if(others, [&](const Reservation& one) { return one.job == JobId(of); });
        const FleetView beside = reserved.beside(fleet_.view(), JobId(of), at(second));
        const FreeCount kept = kept_by_hand(fleet_.view(), others, at(second));
        const FreeCount all = fleet_.view().free(Topology::root(), FleetTypeId(0));
        const FreeCount left = beside.free(Topology::root(), FleetTypeId(0));
        ASSERT_EQ(left.devices, all.devices - kept.devices);
        ASSERT_EQ(left.nodes, all.nodes - kept.nodes);
      }
    }
  }
}

TEST_F(ReservedTest, WhoEndsBeforeAClosureMayHaveItsNodes) {
  Reserved reserved(fleet_.view());
  reserved.reset(fleet_.view());
  reserved.close({{{NodeId(3), 0xff}}, at(5), at(9)});
  std::vector<PlacedGang> gangs(1);
  gangs.front().allocation.ranks = {{NodeId(3), 0x0f}};
  EXPECT_FALSE(reserved.delays(gangs, at(5), JobId(1)));
  EXPECT_TRUE(reserved.delays(gangs, at(6), JobId(1)));
  EXPECT_EQ(reserved.shadow().node(NodeId(3)).free_mask, 0u);
}

}  // namespace
}  // namespace orrery

#include "scheduler/place/placer.hpp"

#include <gtest/gtest.h>

#include "scheduler/place/job_placer.hpp"
#include "scheduler/running_test.hpp"

namespace orrery {
namespace {

GangRequest random_request(Rng& rng) {
  constexpr TopologyLevel kLevels[] = {TopologyLevel::kFleet, TopologyLevel::kFleet,
                                       TopologyLevel::kRack, TopologyLevel::kNode};
  GangRequest request{.type = FleetTypeId(0)};
  request.node_devices = 1U << rng.below(4);
  request.devices = request.node_devices * static_cast<std::uint32_t>(1 + rng.below(12));
  if (rng.below(4) == 0) request.devices += 1;
  request.required = kLevels[rng.below(std::size(kLevels))];
  if (rng.below(6) == 0) request.exclusive = TopologyLevel::kNode;
  if (rng.below(6) == 0) request.rails_aligned = true;
  if (rng.below(6) == 0) request.host.cpu = 14'000;
  return request;
}

class PlacerTest : public testing::Test {
 protected:
  /// Nodes of any number of free accelerators and CPUs, some of them not ready.
  void fill(Rng& rng) {
    for (std::uint32_t node = 0; node < running_.fleet.topology().node_count(); ++node) {
      NodeState state;
      state.free_mask = rng.below(3) == 0 ? 0xff : rng.below(256);
      state.health = rng.below(8) == 0 ? NodeHealth::kLost : NodeHealth::kReady;
      state.used_cpu = static_cast<std::uint32_t>(rng.below(100'000));
      running_.fleet.set_node(NodeId(node), state);
    }
  }

  RunningFleet running_{h100_racks(4, 4)};
};

TEST_F(PlacerTest, SaysWhetherAGangFitsAsPlacingItWould) {
  Rng rng = Rng::stream(1, "placer");
  int fits = 0;
  for (int round = 0; round < 4000; ++round) {
    fill(rng);
    const GangRequest request = random_request(rng);
    const bool placed = running_.placer.place(running_.fleet.view(), request).has_value();
    ASSERT_EQ(running_.placer.fits(running_.fleet.view(), request), placed) << "round " << round;
    fits += placed ? 1 : 0;
  }
  EXPECT_GT(fits, 800);
  EXPECT_LT(fits, 3200);
}

TEST_F(PlacerTest, SaysSoOfJobsWithSeveralOptionsAndQuotasToo) {
  Rng rng = Rng::stream(2, "placer");
  JobPlacer placer(running_.tree);
  for (int round = 0; round < 2000; ++round) {
    fill(rng);
    JobRequest job;
    RoleRequest& role = job.roles.emplace_back();
    role.gangs = static_cast<std::uint32_t>(1 + rng.below(2));
    for (std::uint64_t i = 0; i <= rng.below(2); ++i) {
      role.options.emplace_back().gang = random_request(rng);
    }
    JobPlaceRules rules;
    const auto most = static_cast<std::uint32_t>(rng.below(64));
    rules.may_take = [most](FleetTypeId, std::uint32_t devices) { return devices <= most; };
    const PlaceTry job_try = place_try(placer, job, rules);
    const auto placed = job_try.place(running_.fleet.view());
    ASSERT_EQ(job_try.fits(running_.fleet.view()), placed.has_value()) << "round " << round;
  }
}

TEST_F(PlacerTest, GivesEachGangItsDevicesInTheOrderOfNodes) {
  Rng rng = Rng::stream(3, "placer");
  for (int round = 0; round < 2000; ++round) {
    fill(rng);
    const GangRequest request = random_request(rng);
    const auto placed = running_.placer.place(running_.fleet.view(), request);
    if (!placed) continue;
    EXPECT_EQ(placed->devices(), request.devices);
    NodeId last;
    for (const NodeDevices& at : placed->ranks) {
      EXPECT_TRUE(!last.valid() || last < at.node);
      EXPECT_EQ(running_.fleet.view().node(at.node).free_mask & at.devices, at.devices);
      last = at.node;
    }
  }
}

}  // namespace
}  // namespace orrery

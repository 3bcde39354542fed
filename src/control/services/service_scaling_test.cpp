// control/services/service_scaling_test.cpp - orders that scale a service: up, down, to zero and
// back, beside updates and cancels.
#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "control/services/service_updates_test.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

TEST(ServiceScalingTest, AnOrderHasTheEffectOfAnUpdateToTheSameRevision) {
  UpdatedService chat(1);
  chat.scale(3, "requests");
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1 chat[2]:r1");
  chat.settle();
  EXPECT_EQ(chat.ready(), 3u);
  EXPECT_FALSE(chat.service()->update);
  const ServiceScaling& scaling = *chat.cluster.state().services().scaling(chat.ids[0]);
  EXPECT_EQ(scaling.before, 1u);
  EXPECT_EQ(scaling.replicas, 3u);
  EXPECT_EQ(scaling.why, "requests");
  chat.scale(3);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u) << "it is so already";
  chat.scale(2);
  EXPECT_EQ(chat.cluster.phase(chat.live().back()), JobPhase::kStopping) << "the newest leaves";
  chat.scale(2);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u) << "it is on its way";
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1");
}

TEST(ServiceScalingTest, TheLastReplicaRestsAndWakes) {
  UpdatedService chat(1);
  chat.scale(0, "idle");
  ASSERT_EQ(chat.cluster.actions().size(), 1u);
  EXPECT_EQ(std::get<StopRanks>(chat.cluster.actions()[0]).grace, ControlTiming().drain);
  chat.cluster.gone(chat.ids[0]);
  chat.settle();
  EXPECT_EQ(chat.cluster.phase(chat.ids[0]), JobPhase::kHeld);
  EXPECT_EQ(chat.ready(), 0u);
  chat.scale(0);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u);
  chat.cluster.wait(Duration::hours(100));
  ASSERT_NE(chat.service(), nullptr);
  chat.scale(2, "requests wait");
  chat.settle();
  EXPECT_EQ(chat.ready(), 2u);
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1");
  EXPECT_FALSE(chat.service()->update);
}

TEST(ServiceScalingTest, AnOrderToZeroLeavesTheLastReplicaToAnotherOrder) {
  UpdatedService chat(3);
  chat.scale(0);
  chat.settle();
  EXPECT_EQ(chat.ready(), 1u);
}

TEST(ServiceScalingTest, AReplicaThatIsToRestMayBeWokenBeforeItIsGone) {
  UpdatedService chat(1);
  chat.scale(0);
  ASSERT_EQ(chat.cluster.phase(chat.ids[0]), JobPhase::kStopping);
  chat.scale(1);
  chat.cluster.gone(chat.ids[0]);
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1");
  EXPECT_EQ(chat.ready(), 1u);
}

TEST(ServiceScalingTest, AReplicaThatItsOwnerHoldsIsLeftAlone) {
  UpdatedService chat(1);
  chat.cluster.send(HoldJob{chat.ids[0], JobHold::kOwner});
  chat.scale(0);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u);
  EXPECT_EQ(chat.cluster.job(chat.ids[0]).hold, JobHold::kOwner);
}

TEST(ServiceScalingTest, AServiceThatRestsCanBeUpdatedAndCancelled) {
  UpdatedService chat(1);
  chat.scale(0);
  chat.cluster.gone(chat.ids[0]);
  ASSERT_TRUE(chat.update("r2", 1));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[1]:r2");
  EXPECT_EQ(chat.ready(), 1u);
  chat.scale(0);
  chat.settle();
  ASSERT_EQ(chat.cluster.phase(chat.live().front()), JobPhase::kHeld);
  chat.cluster.send(CancelJob{chat.live().front()});
  EXPECT_EQ(chat.service(), nullptr);
  EXPECT_EQ(chat.cluster.state().services().scaling(chat.ids[0]), nullptr);
}

TEST(ServiceScalingTest, OrdersArePassedOverWhileAnotherRevisionComes) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2, {.surge = 2, .canary = {5000}}));
  chat.scale(4);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u);
  chat.scale(0);
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u);
  chat.cluster.send(ScaleOrder{JobId(99), 2, "load"});
  EXPECT_EQ(chat.cluster.count<ServiceScaled>(), 0u);
}

TEST(ServiceScalingTest, ASnapshotKeepsTheLastOrderAndTheReplicaThatRests) {
  UpdatedService chat(1);
  chat.scale(0, "idle");
  chat.cluster.gone(chat.ids[0]);
  const std::string snapshot = snapshot_of(chat.cluster.state());
  State again(chat.cluster.setup());
  ASSERT_TRUE(restore(again, snapshot));
  const ServiceScaling* scaling = again.services().scaling(chat.ids[0]);
  ASSERT_NE(scaling, nullptr);
  EXPECT_EQ(scaling->why, "idle");
  EXPECT_EQ(scaling->at, chat.cluster.state().services().scaling(chat.ids[0])->at);
  EXPECT_EQ(again.job(chat.ids[0]).hold, JobHold::kResting);
}

TEST(ServiceScalingTest, AnySequenceOfOrdersEndsWithTheLastNumber) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    UpdatedService chat(2);
    std::uint32_t wanted = 2;
    for (int i = 0; i < 12; ++i) {
      wanted = static_cast<std::uint32_t>(rng.below(5));
      chat.scale(wanted);
      if (rng.below(2) == 0) chat.serve_all();
      if (rng.below(2) == 0) chat.drain_all();
      ASSERT_NE(chat.service(), nullptr) << "seed " << seed;
      ASSERT_LE(chat.live().size(), 12u) << "seed " << seed;
    }
    for (int i = 0; i < 3; ++i) {
      chat.settle();
      chat.scale(wanted);
    }
    chat.settle();
    ASSERT_EQ(chat.ready(), wanted) << "seed " << seed;
    ASSERT_FALSE(chat.service()->update) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery

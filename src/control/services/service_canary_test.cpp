// control/services/service_canary_test.cpp - a revision that is tried on a share of the requests.
#include <gtest/gtest.h>

#include "control/services/service_updates_test.hpp"

namespace orrery {
namespace {

class ServiceCanaryTest : public testing::Test {
 protected:
  static constexpr auto kPromote = CanaryVerdict::Of::kPromote;
  static constexpr auto kGiveUp = CanaryVerdict::Of::kGiveUp;

  static RolloutTerms terms() { return {.canary = {100, 5000}, .bake = Duration::minutes(1)}; }
  static void judge(UpdatedService& chat, std::uint32_t stage, CanaryVerdict::Of of) {
    chat.cluster.send(CanaryVerdict{chat.ids.front(), 2, stage, of, "it is worse"});
    chat.settle();
  }
  static std::optional<TrafficSplit> split(const UpdatedService& chat) {
    return chat.cluster.state().services().split(*chat.service());
  }
};

TEST_F(ServiceCanaryTest, GetsReplicasForItsShareStageByStage) {
  UpdatedService chat(3);
  ASSERT_TRUE(chat.update("r2", 3, terms()));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1 chat[2]:r1 chat[3]:r2")
      << "the others stay, as there is room";
  EXPECT_EQ(split(chat)->revision, 2u);
  EXPECT_EQ(split(chat)->share, 100u);
  judge(chat, 0, kPromote);
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1 chat[3]:r2 chat[4]:r2")
      << "half of three, rounded up";
  EXPECT_EQ(split(chat)->share, 5000u);
  EXPECT_TRUE(chat.service()->update);
  judge(chat, 1, kPromote);
  EXPECT_EQ(chat.replicas(), "chat[3]:r2 chat[4]:r2 chat[5]:r2");
  EXPECT_FALSE(chat.service()->update);
  EXPECT_FALSE(split(chat));
  EXPECT_EQ(chat.service()->revision.number, 2u);
}

TEST_F(ServiceCanaryTest, ThatIsGivenUpLosesItsRequestsAtOnceAndItsReplicas) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2, terms()));
  chat.settle();
  chat.cluster.send(CanaryVerdict{chat.ids.front(), 2, 0, kGiveUp, "it is worse"});
  EXPECT_EQ(split(chat)->revision, 2u);
  EXPECT_EQ(split(chat)->share, 0u);
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1");
  EXPECT_EQ(chat.service()->outcome, "it is worse");
  EXPECT_EQ(chat.service()->revision.number, 1u);
  EXPECT_FALSE(split(chat));
}

TEST_F(ServiceCanaryTest, VerdictsOnOtherStagesHaveNoEffect) {
  UpdatedService chat(2);
  chat.cluster.send(CanaryVerdict{JobId(99), 2, 0, kGiveUp, ""});
  judge(chat, 0, kGiveUp);
  ASSERT_TRUE(chat.update("r2", 2, terms()));
  chat.settle();
  judge(chat, 1, kPromote);
  EXPECT_EQ(chat.service()->update->stage, 0u);
  judge(chat, 0, kPromote);
  judge(chat, 0, kGiveUp);
  EXPECT_EQ(chat.service()->update->stage, 1u);
  EXPECT_EQ(chat.service()->update->back, "");
}

TEST_F(ServiceCanaryTest, WhoseReplicasFailInALaterStageIsGivenUp) {
  UpdatedService chat(3);
  ASSERT_TRUE(chat.update("r2", 3, terms()));
  chat.settle();
  chat.cluster.send(CanaryVerdict{chat.ids.front(), 2, 0, kPromote, {}});
  chat.drain_all();
  chat.cluster.tick();
  const JobId second = chat.live().back();
  ASSERT_EQ(chat.cluster.job(second).name, "chat[4]");
  for (int fault = 0; fault < 2; ++fault) {
    chat.cluster.up(second);
    chat.cluster.end(second, ExitKind::kProgram);
    chat.cluster.wait(Duration::minutes(2));
  }
  EXPECT_EQ(split(chat)->share, 0u);
  chat.settle();
  EXPECT_EQ(chat.service()->revision.number, 1u);
  EXPECT_EQ(chat.ready(), 3u);
}

TEST_F(ServiceCanaryTest, IsTakenBackByThePresentRevisionAndKeepsOthersAway) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2, terms()));
  chat.settle();
  EXPECT_FALSE(chat.update("r3", 2, terms()));
  EXPECT_FALSE(chat.update("r3", 2));
  ASSERT_TRUE(chat.update("r1", 2, terms()));
  EXPECT_EQ(split(chat)->share, 0u);
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1");
  EXPECT_EQ(chat.service()->outcome, "the canary was taken back");
  ASSERT_TRUE(chat.update("", 2));
  EXPECT_EQ(chat.service()->outcome, "") << "an update that changes nothing has succeeded";
  ASSERT_TRUE(chat.update("r3", 2, terms()));
}

TEST_F(ServiceCanaryTest, StaysOneWhereTheServiceShrinks) {
  UpdatedService chat(3);
  ASSERT_TRUE(chat.update("r2", 3, {.canary = {5000}}));
  chat.settle();
  ASSERT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1 chat[3]:r2 chat[4]:r2");
  ASSERT_TRUE(chat.update("r2", 1, {.canary = {5000}}));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[3]:r2");
  EXPECT_TRUE(chat.service()->update);
  judge(chat, 0, kGiveUp);
  EXPECT_EQ(chat.replicas(), "chat[0]:r1") << "the number is the one asked for last";
}

TEST_F(ServiceCanaryTest, OfOneReplicaStandsBesideIt) {
  UpdatedService chat(1);
  EXPECT_FALSE(chat.update("r2", 1, {.surge = 0, .unavailable = 1, .canary = {100}}));
  ASSERT_TRUE(chat.update("r2", 1, {.canary = {100}}));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r2");
  EXPECT_TRUE(chat.service()->update);
  judge(chat, 0, kPromote);
  EXPECT_EQ(chat.replicas(), "chat[1]:r2");
}

TEST_F(ServiceCanaryTest, WithoutSurgeAReplicaMakesRoom) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2, {.surge = 0, .unavailable = 1, .canary = {100}}));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[2]:r2");
  judge(chat, 0, kGiveUp);
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[3]:r1");
}

TEST_F(ServiceCanaryTest, AnotherNumberOfReplicasKeepsItsStageAndTheSameTermsChangeNothing) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2, terms()));
  chat.settle();
  judge(chat, 0, kPromote);
  ASSERT_TRUE(chat.update("r2", 3, terms()));
  EXPECT_EQ(chat.service()->update->stage, 1u);
  ASSERT_TRUE(chat.update("r2", 3, terms()));
  EXPECT_EQ(chat.cluster.count<ServiceUpdating>(), 0u);
  ASSERT_TRUE(chat.update("r2", 3, {})) << "without a canary all replicas follow";
  chat.settle();
  EXPECT_FALSE(chat.service()->update);
  ASSERT_TRUE(chat.update("", 2, terms()));
  chat.settle();
  EXPECT_FALSE(chat.service()->update) << "scaling tries nothing";
}

}  // namespace
}  // namespace orrery

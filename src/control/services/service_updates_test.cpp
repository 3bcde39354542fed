#include "control/services/service_updates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers/rng.hpp"
#include "control/services/service_updates_test.hpp"

namespace orrery {
namespace {

TEST(ServiceUpdatesTest, ReplicasOfANewRevisionTakeThePlaceOfTheOldOnesOneByOne) {
  UpdatedService chat(2);
  EXPECT_EQ(chat.ready(), 2u);
  ASSERT_TRUE(chat.update("r2", 2));
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1 chat[2]:r2") << "one beyond those wanted";
  EXPECT_EQ(chat.ready(), 2u) << "nothing stops before the new one is ready";
  chat.serve_all();
  EXPECT_EQ(chat.cluster.phase(chat.ids[1]), JobPhase::kStopping);
  EXPECT_EQ(chat.cluster.phase(chat.ids[0]), JobPhase::kRunning);
  EXPECT_EQ(chat.live().size(), 3u) << "its devices are in use until it has drained";
  chat.drain_all();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[2]:r2 chat[3]:r2");
  EXPECT_TRUE(chat.service()->update);
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[2]:r2 chat[3]:r2");
  EXPECT_FALSE(chat.service()->update);
  EXPECT_EQ(chat.service()->revision.number, 2u);
  EXPECT_EQ(chat.service()->outcome, "");
  EXPECT_EQ(chat.cluster.state().services().membership(chat.ids[0])->revision, 1u);
}

TEST(ServiceUpdatesTest, AReplicaHasTimeToEndItsRequests) {
  UpdatedService chat(1);
  ASSERT_TRUE(chat.update("r2", 1, {.surge = 0, .unavailable = 1}));
  ASSERT_EQ(chat.cluster.actions().size(), 1u);
  EXPECT_EQ(std::get<StopRanks>(chat.cluster.actions()[0]).grace, ControlTiming().drain);
  chat.drain_all();
  EXPECT_EQ(chat.replicas(), "chat[1]:r2") << "the service outlives its only replica";
  chat.settle();
  EXPECT_EQ(chat.ready(), 1u);
  EXPECT_FALSE(chat.service()->update);
}

TEST(ServiceUpdatesTest, AServiceGrowsAndShrinksWithoutANewRevision) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("", 4));
  EXPECT_EQ(chat.live().size(), 4u);
  chat.settle();
  EXPECT_EQ(chat.ready(), 4u);
  EXPECT_EQ(chat.service()->revision.number, 1u);
  ASSERT_TRUE(chat.update("r1", 1));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1") << "the newest leave first";
  EXPECT_FALSE(chat.service()->update);
  ASSERT_TRUE(chat.update("r1", 1));
  EXPECT_EQ(chat.cluster.count<ServiceUpdating>(), 0u) << "it is so already";
}

TEST(ServiceUpdatesTest, OtherTermsOfARevisionLeaveItsReplicas) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.change_text("r1 with terms", 1, 2));
  EXPECT_EQ(chat.replicas(), "chat[0]:r1 chat[1]:r1");
  EXPECT_FALSE(chat.service()->update) << "nothing is to be done";
  EXPECT_EQ(chat.service()->revision.texts.spec, "r1 with terms");
  EXPECT_EQ(chat.service()->revision.number, 1u);
  ASSERT_TRUE(chat.change_text("r1 with terms", 1, 2));
  EXPECT_EQ(chat.cluster.count<ServiceUpdating>(), 0u) << "it is so already";
  ASSERT_TRUE(chat.change_text("r1 with others", 1, 3));
  chat.scale(2);
  chat.settle();
  EXPECT_EQ(chat.service()->revision.texts.spec, "r1 with others") << "an order keeps the text";
  EXPECT_EQ(chat.ready(), 2u);
  ASSERT_TRUE(chat.update("r2", 2));
  chat.settle();
  EXPECT_EQ(chat.service()->revision.number, 2u);
}

TEST(ServiceUpdatesTest, ARevisionThatFailsIsGivenUpAndTheFormerOneComesBack) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 3, {.surge = 1, .unavailable = 1}));
  chat.cluster.tick();
  for (int fault = 0; fault < 2; ++fault) {
    const JobId bad = chat.live().back();
    ASSERT_EQ(chat.cluster.job(bad).spec, "r2");
    chat.cluster.up(bad);
    chat.cluster.end(bad, ExitKind::kProgram);
    chat.cluster.wait(Duration::minutes(2));
  }
  ASSERT_TRUE(chat.service());
  chat.settle();
  EXPECT_EQ(chat.ready(), 2u) << "as many as before";
  for (const JobId id : chat.live()) EXPECT_EQ(chat.cluster.job(id).spec, "r1");
  EXPECT_FALSE(chat.service()->update);
  EXPECT_NE(chat.service()->outcome.find("failed 2 times before it was ready"), std::string::npos)
      << chat.service()->outcome;
  EXPECT_EQ(chat.service()->revision.number, 1u);
  ASSERT_TRUE(chat.update("r3", 2));
  chat.settle();
  EXPECT_EQ(chat.service()->revision.number, 3u) << "a number is given once";
  EXPECT_EQ(chat.service()->outcome, "");
}

TEST(ServiceUpdatesTest, ACancelledReplicaEndsTheUpdateAndNoneTakesItsPlace) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2));
  for (const JobId id : chat.live()) chat.cluster.send(CancelJob{id});
  EXPECT_EQ(chat.service()->outcome, "job 0 (chat[0]) was cancelled");
  chat.drain_all();
  EXPECT_EQ(chat.service(), nullptr);
  EXPECT_FALSE(chat.update("r3", 2)) << "there is no service any more";
}

TEST(ServiceUpdatesTest, ToCancelAReplicaThatTheUpdateHasCancelledChangesNothing) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2));
  chat.serve_all();
  ASSERT_EQ(chat.cluster.phase(chat.ids[1]), JobPhase::kStopping);
  chat.cluster.send(CancelJob{chat.ids[1]});
  EXPECT_TRUE(chat.service()->update);
  chat.settle();
  EXPECT_EQ(chat.ready(), 2u);
  EXPECT_EQ(chat.service()->revision.number, 2u);
}

TEST(ServiceUpdatesTest, WhatCannotBeIsRefused) {
  UpdatedService chat(1);
  EXPECT_FALSE(chat.update("r2", 0));
  EXPECT_FALSE(chat.update("r2", 1, {.surge = 0, .unavailable = 0}));
  EXPECT_FALSE(chat.cluster.send(UpdateService{JobId(99), {}, {}, 1, {}}).answer.status);
  const JobId batch = chat.cluster.submit(chat.cluster.job(8));
  EXPECT_FALSE(chat.cluster.send(UpdateService{batch, {}, {}, 1, {}}).answer.status);
  EXPECT_FALSE(chat.service()->update);
}

TEST(ServiceUpdatesTest, AProgramThatEndsBeforeItReportsIsNotStartedForEver) {
  UpdatedService chat(1);
  ASSERT_TRUE(chat.update("r2", 1));
  chat.cluster.tick();
  const JobId bad = chat.live().back();
  chat.cluster.up(bad);
  chat.cluster.end(bad, ExitKind::kDone);
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[0]:r1");
  EXPECT_EQ(chat.service()->outcome, "job 1 (chat[1]) ended: its log may say why");
}

TEST(ServiceUpdatesTest, AnUpdateThatIsStuckTakesOtherTerms) {
  UpdatedService chat(4);
  ASSERT_TRUE(chat.update("r2", 4));
  chat.settle();
  EXPECT_TRUE(chat.service()->update) << "no node is free";
  ASSERT_TRUE(chat.update("r2", 4, {.surge = 0, .unavailable = 2}));
  EXPECT_EQ(chat.cluster.count<ServiceUpdating>(), 1u);
  chat.settle();
  EXPECT_EQ(chat.ready(), 4u);
  EXPECT_EQ(chat.service()->revision.number, 2u);
}

TEST(ServiceUpdatesTest, WhatAnUpdateThatWasGivenUpLeftIsNotWhatIsWanted) {
  UpdatedService chat(2);
  ASSERT_TRUE(chat.update("r2", 2));
  chat.serve_all();
  chat.cluster.send(CancelJob{chat.ids[0]});
  chat.drain_all();
  ASSERT_EQ(chat.replicas(), "chat[2]:r2");
  ASSERT_TRUE(chat.update("r1", 1));
  chat.settle();
  EXPECT_EQ(chat.replicas(), "chat[3]:r1");
}

TEST(ServiceUpdatesTest, AReplicaFromBeforeThatFailsIsNoFaultOfTheUpdate) {
  UpdatedService chat(2);
  const JobId old = chat.ids[1];
  for (int fault = 0; fault < 3; ++fault) {
    chat.cluster.end(old, ExitKind::kProgram);
    chat.cluster.wait(Duration::minutes(2));
    if (chat.cluster.phase(old) == JobPhase::kStarting) chat.cluster.up(old);
  }
  ASSERT_TRUE(chat.update("r2", 2));
  EXPECT_TRUE(chat.service()->update);
  chat.settle();
  EXPECT_EQ(chat.service()->outcome, "");
  EXPECT_EQ(chat.service()->revision.number, 2u);
}

TEST(ServiceUpdatesTest, AServiceThatSaysNothingOfItselfIsNotUpdated) {
  ScriptedCluster cluster;
  Submission replica = cluster.job(8);
  replica.request.kind = JobKind::kServe;
  replica.request.array = ArrayId(0);
  const JobId id = cluster.send(SubmitJob{replica, "r1", "", ""}).answer.job;
  cluster.tick();
  cluster.up(id);
  cluster.wait(Duration::minutes(2));
  const Outcome& refused = cluster.send(UpdateService{id, replica, {"r2", "", ""}, 1, {}});
  ASSERT_FALSE(refused.answer.status);
  EXPECT_NE(refused.answer.status.error().message.find("does not report whether it is ready"),
            std::string::npos);
  EXPECT_EQ(cluster.phase(id), JobPhase::kRunning);
}

/// Does to a service what users, nodes and replicas may do. Checks that no update takes a ready
/// replica that it may not.
class RandomService {
 public:
  explicit RandomService(std::uint64_t seed) : rng_(seed) {}

  void step() {
    const std::uint32_t before = chat_.ready();
    const bool control_alone = act();
    const Service* service = chat_.service();
    if (service == nullptr || !service->update || !control_alone) return;
    const ServiceUpdate& update = *service->update;
    EXPECT_TRUE(chat_.ready() >= before ||
                chat_.ready() + update.terms.unavailable >= update.replicas)
        << chat_.replicas() << ": " << before << " were ready, " << chat_.ready() << " are";
    EXPECT_LE(service->live.size(), most_);
  }
  /// Whether a service that is left alone reaches what is wanted.
  void expect_settles() {
    for (int i = 0; i < 8; ++i) {
      chat_.settle();
      judge(CanaryVerdict::Of::kPromote);
      chat_.cluster.wait(Duration::minutes(20));
    }
    if (chat_.service() == nullptr) return;
    EXPECT_FALSE(chat_.service()->update) << chat_.replicas();
  }

 private:
  /// Returns whether what follows is the doing of control alone.
  bool act() {
    const std::vector<JobId> live = chat_.live();
    if (live.empty()) return false;
    const JobId any = live[rng_.below(live.size())];
    switch (rng_.below(8)) {
      case 0: {
        const auto replicas = static_cast<std::uint32_t>(1 + rng_.below(3));
        const std::string spec = fmt::format("r{}", 1 + rng_.below(4));
        RolloutTerms terms{.surge = static_cast<std::uint32_t>(rng_.below(2)), .unavailable = 1};
        if (rng_.below(2) == 0 && replicas + terms.surge > 1) terms.canary = {100, 5000};
        // An update that goes back may have as many more than there were.
        most_ = std::max<std::size_t>({live.size() + terms.surge, replicas + terms.surge, most_});
        const Service* service = chat_.service();
        const bool tried = service->update && is_canary(*service->update);
        EXPECT_TRUE(chat_.update(rng_.below(3) == 0 ? "" : spec, replicas, terms) || tried);
        return true;
      }
      case 1:
        chat_.cluster.tick();
        if (chat_.cluster.phase(any) == JobPhase::kRunning) {
          chat_.cluster.end(any, ExitKind::kProgram);
        }
        return false;
      case 2:
        chat_.cluster.wait(Duration::seconds(30));
        return true;
      case 3:
        chat_.drain_all();
        return true;
      case 4:
        judge(rng_.below(3) == 0 ? CanaryVerdict::Of::kGiveUp : CanaryVerdict::Of::kPromote);
        return true;
      default:
        chat_.cluster.tick();
        chat_.serve(any);
        return true;
    }
  }

  /// Judges the present stage of the canary, if there is one.
  void judge(CanaryVerdict::Of of) {
    const Service* service = chat_.service();
    if (service == nullptr || !service->update) return;
    const ServiceUpdate& update = *service->update;
    chat_.cluster.send(
        CanaryVerdict{service->id, update.to.number, update.stage, of, "it is worse"});
  }

  UpdatedService chat_{3};
  Rng rng_;
  std::size_t most_ = 3;
};

TEST(ServiceUpdatesProperty, NoUpdateTakesAReadyReplicaThatIsNeededAndEachOneEnds) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomService service(seed);
    for (int i = 0; i < 120 && !HasFailure(); ++i) service.step();
    service.expect_settles();
  }
}

}  // namespace
}  // namespace orrery

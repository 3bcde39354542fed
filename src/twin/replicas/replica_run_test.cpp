#include "twin/replicas/replica_run.hpp"

#include <gtest/gtest.h>

#include "perf/facts.hpp"

namespace orrery {
namespace {

const Facts& facts() {
  static const Facts kFacts = Facts::load({}).value();
  return kFacts;
}

/// Three controllers without any fault.
class ReplicasTest : public testing::Test {
 protected:
  void SetUp() override { world_.run(Duration::seconds(1)); }
  void TearDown() override { EXPECT_EQ(world_.failure(), ""); }

  [[nodiscard]] std::uint64_t refusals() const {
    std::uint64_t refusals = 0;
    for (const auto& each : world_.replicas()) refusals += each->refusals();
    return refusals;
  }

  ReplicaWorld world_{facts(), {}, 1};
};

TEST_F(ReplicasTest, OneLeadsAtOnceAndJobsEnd) {
  world_.clients().submit(8);
  world_.run(Duration::minutes(1));
  EXPECT_TRUE(world_.settled());
  EXPECT_EQ(world_.promises().takeovers(), 1U);
  world_.promises().check_log();
}

TEST_F(ReplicasTest, ALeaderThatIsPausedAcrossItsTimeIsReplacedAndGoesOnSilent) {
  Replica* const first = world_.leader();
  ASSERT_NE(first, nullptr);
  first->pause();
  world_.run(Duration::milliseconds(3'500));
  EXPECT_EQ(world_.promises().takeovers(), 2U);
  world_.clients().submit(8);
  world_.run(Duration::seconds(2));
  first->resume();
  world_.clients().read();
  world_.run(Duration::minutes(1));
  EXPECT_TRUE(world_.settled());
  EXPECT_GT(world_.clients().reads(), 0U);
  EXPECT_EQ(world_.promises().takeovers(), 2U);
}

TEST_F(ReplicasTest, AnOutageOfEtcdIsNoTakeover) {
  world_.etcd().set(VirtualEtcd::Reach::kAway);
  world_.run(Duration::seconds(30));
  world_.etcd().set(VirtualEtcd::Reach::kThere);
  world_.run(Duration::seconds(10));
  EXPECT_EQ(world_.promises().takeovers(), 1U);
}

TEST_F(ReplicasTest, AnOlderCopyOfTheLogIsRefusedByEveryMachine) {
  const EtcdContent backup = world_.etcd().content();
  world_.clients().submit(8);
  world_.run(Duration::seconds(10));
  world_.etcd().restore(backup);
  world_.run(Duration::seconds(10));
  EXPECT_GE(refusals(), 3U);
  EXPECT_EQ(world_.leader(), nullptr);
  world_.etcd().restore_newest();
  world_.run(Duration::minutes(1));
  EXPECT_TRUE(world_.settled());
  world_.promises().check_log();
}

TEST(Replicas, TwoRunsOfASeedAreTheSame) {
  const ReplicaRun first = run_replicas(facts(), 7);
  const ReplicaRun second = run_replicas(facts(), 7);
  EXPECT_EQ(first.failure, "");
  EXPECT_EQ(first.history, second.history);
  EXPECT_EQ(first.reads, second.reads);
  EXPECT_GT(first.terms, 1U);
}

}  // namespace
}  // namespace orrery

#include "control/passes/full_passes.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class FullPassesTest : public ::testing::Test {
 protected:
  [[nodiscard]] Instant due() const { return passes_.due(cluster_.state(), now_); }
  /// Requests a pass and takes its proposal at once.
  void pass() {
    passes_.begin(cluster_.state(), now_);
    EXPECT_TRUE(passes_.end({.version = cluster_.state().version()}));
  }

  ScriptedCluster cluster_{{.policy = "hardware-aware:full_interval=60 s"}};
  FullPasses passes_;
  Instant now_ = cluster_.now();
};

TEST_F(FullPassesTest, AreDueOnceAnIntervalWhileJobsWait) {
  EXPECT_EQ(due(), Instant::max()) << "no job waits or runs";
  EXPECT_EQ(passes_.begun(), std::nullopt);
  cluster_.submit(cluster_.job(8));
  EXPECT_EQ(due(), now_);
  passes_.begin(cluster_.state(), now_);
  EXPECT_EQ(passes_.begun(), now_);
  EXPECT_EQ(due(), Instant::max()) << "one is under way";
  EXPECT_TRUE(passes_.end({.version = cluster_.state().version()}));
  EXPECT_EQ(due(), now_ + Duration::seconds(60));
  now_ = now_ + Duration::seconds(90);
  EXPECT_EQ(due(), now_);
}

TEST_F(FullPassesTest, AreDueWithoutWaitingJobsOnceDevicesWereFreed) {
  cluster_.run(cluster_.job(8));
  const JobId other = cluster_.run(cluster_.job(8));
  pass();
  EXPECT_EQ(due(), Instant::max());
  cluster_.end(other);
  EXPECT_EQ(due(), now_ + Duration::seconds(60));
  pass();
  EXPECT_EQ(due(), Instant::max());
}

TEST_F(FullPassesTest, AreNeverDueUnderAPolicyThatHasNone) {
  for (const char* policy : {"fifo:blocking=false", "hardware-aware:full_interval=0 s"}) {
    ScriptedCluster cluster({.policy = policy});
    cluster.submit(cluster.job(8));
    EXPECT_EQ(passes_.due(cluster.state(), now_), Instant::max()) << policy;
  }
}

TEST_F(FullPassesTest, AProposalFromBeforeTheOptionsChangedIsRefused) {
  passes_.begin(cluster_.state(), now_);
  passes_.options_changed(5);
  EXPECT_FALSE(passes_.end({.version = 4}));
  EXPECT_TRUE(passes_.end({.version = 5}));
}

TEST_F(FullPassesTest, AnotherFleetNeedsAPassOfItsOwn) {
  cluster_.submit(cluster_.job(8));
  passes_.begin(cluster_.state(), now_);
  passes_.take_up_fleet(9);
  EXPECT_EQ(due(), now_ + Duration::seconds(60)) << "the one under way is for another fleet";
  EXPECT_FALSE(passes_.end({.version = 8}));
}

}  // namespace
}  // namespace orrery

#include "node/hold_watch.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class HoldWatchTest : public testing::Test {
 protected:
  void begin(const std::string& hold = "pilot-3-1") {
    watch_ = std::make_unique<HoldWatch>(
        HoldWatch::Setup{time_, time_, Log(sink_), hold},
        HoldWatch::Agent{.connected = [this] { return connected_; },
                         .idle = [this] { return idle_; },
                         .tell = [this](const HoldEnding&) { ++told_; },
                         .kill = [this](const std::function<void()>&) { ++killed_; },
                         .stop = [this] { ++stopped_; }});
  }
  void wait(Duration time) { time_.run_until(time_.now + time); }

  SetTime time_;
  KeptLines sink_;
  std::unique_ptr<HoldWatch> watch_;
  bool connected_ = true;
  bool idle_ = true;
  int told_ = 0;
  int killed_ = 0;
  int stopped_ = 0;
};

TEST_F(HoldWatchTest, AnAgentOutsideAHoldStopsAtOnce) {
  begin("");
  connected_ = false;
  wait(Duration::hours(1));
  EXPECT_EQ(stopped_, 0);
  watch_->end();
  EXPECT_EQ(stopped_, 1);
  EXPECT_EQ(told_, 0);
}

TEST_F(HoldWatchTest, TheControllerEndsTheRanksAndTheAgentWaitsForThem) {
  begin();
  idle_ = false;
  watch_->end();
  watch_->end();
  EXPECT_EQ(told_, 1);
  wait(Duration::seconds(15));
  EXPECT_EQ(stopped_, 0);
  EXPECT_EQ(killed_, 0);
  idle_ = true;
  wait(Duration::seconds(1));
  EXPECT_EQ(stopped_, 1);
}

// A controller that took over in the meantime did not know.
TEST_F(HoldWatchTest, TheEndIsToldAgainWhileRanksRun) {
  begin();
  idle_ = false;
  watch_->end();
  wait(Duration::seconds(5));
  EXPECT_EQ(told_, 3);
}

TEST_F(HoldWatchTest, TheAgentKillsRanksThatStayAndEndsBeforeItIsKilled) {
  begin();
  idle_ = false;
  watch_->end();
  wait(Duration::seconds(21));
  EXPECT_EQ(killed_, 1);
  EXPECT_EQ(stopped_, 0);
  wait(Duration::seconds(5));
  EXPECT_EQ(killed_, 1);
  EXPECT_EQ(stopped_, 1);
}

TEST_F(HoldWatchTest, AnAgentWithoutAControllerEndsWhenNoRankRuns) {
  begin();
  wait(Duration::minutes(30));
  EXPECT_EQ(stopped_, 0);
  connected_ = false;
  idle_ = false;
  wait(Duration::minutes(30));
  EXPECT_EQ(stopped_, 0);
  connected_ = true;
  idle_ = true;
  wait(Duration::minutes(1));
  connected_ = false;
  wait(Duration::minutes(9));
  EXPECT_EQ(stopped_, 0);
  wait(Duration::minutes(2));
  EXPECT_EQ(stopped_, 1);
}

TEST(OutcomeOfLeavingTest, OnlyThePlannedEndOfAHoldIsNoError) {
  const Error planned{ErrorKind::kInfeasible, std::string(kNodeNotLent), {}};
  EXPECT_TRUE(outcome_of_leaving("pilot-3-1", planned));
  const Error other{ErrorKind::kInfeasible, "another agent speaks for the node now", {}};
  const Status refused = outcome_of_leaving("pilot-3-1", other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInput);
  EXPECT_EQ(refused.error().message, other.message);
  EXPECT_FALSE(outcome_of_leaving("", planned)) << "the agent runs in no hold";
}

}  // namespace
}  // namespace orrery

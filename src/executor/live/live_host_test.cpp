#include "executor/live/live_host.hpp"

#include <optional>

#include "executor/live/live_host_test.hpp"

namespace orrery {
namespace {

class LiveHostTest : public LiveHostFixture {
 protected:
  void SetUp() override { make_host(); }
};

TEST_F(LiveHostTest, WakesAtTheTimeThatWasNamedLast) {
  const Instant begin = time_.now;
  const Instant now = host_->now();
  ASSERT_EQ(now, begin + Duration::hours(1));
  host_->wake_at(now + Duration::seconds(5));
  host_->wake_at(now + Duration::seconds(10));
  EXPECT_EQ(time_.waiting(), 1U);
  time_.run_until(begin + Duration::seconds(9));
  EXPECT_EQ(woken_, 0);
  time_.run_until(begin + Duration::seconds(10));
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(time_.waiting(), 0U);
  host_->wake_at(now + Duration::seconds(20));
  host_->wake_at(Instant::max());
  EXPECT_EQ(time_.waiting(), 0U);
  host_->wake_at(now + Duration::seconds(20));
  host_.reset();
  EXPECT_EQ(time_.waiting(), 0U) << "the timer ends with the host";
}

TEST_F(LiveHostTest, AnAnswerLeavesWhenItsEventsAreDurable) {
  std::optional<bool> answer;
  host_->handle(SetSpare{NodeId(0), true}, "",
                [&](const Answer& told) { answer = told.status.has_value(); });
  EXPECT_TRUE(host_->state().node(NodeId(0)).spare);
  EXPECT_EQ(answer, std::nullopt);
  host_->control().durable(appended_);
  EXPECT_EQ(answer, true);
}

TEST_F(LiveHostTest, HandlesEverythingThatIsDue) {
  for (const std::uint32_t node : {0U, 1U}) host_->handle(NodeJoined{NodeId(node), 7});
  const JobId job = submit();
  EXPECT_EQ(host_->state().job(job).phase, JobPhase::kQueued);
  host_->advance(host_->now());
  EXPECT_EQ(host_->state().job(job).phase, JobPhase::kStarting);
  EXPECT_GT(host_->control().next_due(), host_->now());
}

TEST_F(LiveHostTest, AHaltSaysWhyAndRefusesInputs) {
  EXPECT_FALSE(host_->is_halted());
  EXPECT_EQ(host_->halted(), "");
  EXPECT_TRUE(host_->check_running());
  host_->control().deliver(report_of(NodeId(1), {{JobId(3), 2}, {JobId(4), 1}}), host_->now());
  ASSERT_TRUE(host_->is_halted());
  EXPECT_TRUE(host_->halted().starts_with(
      "the controller is halted: node1 runs attempt 2 of job 3, which the log never had, and 1 "
      "more: a part of the log is lost."))
      << host_->halted();
  EXPECT_NE(host_->halted().find("orrery store restore BACKUP --dir DIR"), std::string::npos);
  EXPECT_EQ(host_->check_running().error().message, host_->halted());
  std::optional<bool> answer;
  host_->handle(SetSpare{NodeId(0), true}, "",
                [&](const Answer& told) { answer = told.status.has_value(); });
  EXPECT_EQ(answer, false);
  EXPECT_FALSE(host_->state().node(NodeId(0)).spare);
}

}  // namespace
}  // namespace orrery

#include "executor/agents/report_delivery.hpp"

#include <optional>

#include "executor/log/live_log_test.hpp"

namespace orrery {
namespace {

class ReportDeliveryTest : public LiveLogFixture {
 protected:
  void begin(ControlHost::LostJobs lost_jobs) {
    make_host(lost_jobs);
    make_log();
    delivery_.emplace(
        Log(sink_), ReportDelivery::Options{
                        .host = *host_, .setup = *setup_, .texts = *log_, .lost_jobs = lost_jobs});
  }
  [[nodiscard]] std::uint64_t next_job() const {
    return setup_->control().next_job(host_->state().jobs());
  }

  std::optional<ReportDelivery> delivery_;
};

TEST_F(ReportDeliveryTest, UnknownRanksHaltTheHostWithOneLine) {
  begin(ControlHost::LostJobs::kAsk);
  delivery_->deliver(report_of(NodeId(0), {}));
  EXPECT_FALSE(host_->is_halted());
  delivery_->deliver(report_of(NodeId(0), {{JobId(30), 1}}));
  delivery_->deliver(report_of(NodeId(1), {{JobId(31), 1}}));
  EXPECT_TRUE(host_->is_halted());
  EXPECT_EQ(sink_.lines.size(), 1U) << sink_.text();
  EXPECT_EQ(sink_.count("error halted why="), 1U) << sink_.text();
  EXPECT_EQ(next_job(), 0U);
}

TEST_F(ReportDeliveryTest, TheNumberOfALostJobIsNotGivenOutAgain) {
  begin(ControlHost::LostJobs::kEnd);
  const Report lost = report_of(NodeId(0), {{JobId(30), 1}});
  delivery_->deliver(lost);
  delivery_->deliver(lost);
  EXPECT_FALSE(host_->is_halted());
  EXPECT_EQ(next_job(), 31U);
  EXPECT_EQ(setup_->control().lost_jobs.size(), 1U);
  EXPECT_EQ(sink_.count("ranks of a lost job are ended job=30 attempt=1 node=\"node0\""), 1U)
      << sink_.text();
  delivery_->deliver(report_of(NodeId(1), {{JobId(12), 1}}));
  EXPECT_EQ(next_job(), 31U);
  EXPECT_EQ(submit(), JobId(31));
  delivery_->deliver(report_of(NodeId(1), {{JobId(40), 1}}));
  EXPECT_EQ(submit(), JobId(41));
}

TEST_F(ReportDeliveryTest, ANumberThatIsFarTooLargeIsNotBelieved) {
  begin(ControlHost::LostJobs::kEnd);
  delivery_->deliver(report_of(NodeId(0), {{JobId(1'000'001), 1}}));
  EXPECT_EQ(next_job(), 0U);
  delivery_->deliver(report_of(NodeId(0), {{JobId(1'000'000), 1}}));
  EXPECT_EQ(next_job(), 1'000'001U);
}

TEST_F(ReportDeliveryTest, AnAgentThatInventsRanksDoesNotFillTheLog) {
  begin(ControlHost::LostJobs::kEnd);
  std::vector<AttemptId> invented;
  for (std::uint32_t attempt = 1; attempt <= 1'200; ++attempt) {
    invented.push_back({JobId(5), attempt});
  }
  invented.push_back({JobId(7), 1});
  delivery_->deliver(report_of(NodeId(0), invented));
  EXPECT_EQ(sink_.lines.size(), 1'000U);
  EXPECT_EQ(next_job(), 8U) << "its number is skipped all the same";
}

}  // namespace
}  // namespace orrery

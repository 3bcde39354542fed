#include "executor/jobs/request_renewal.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/core/core.hpp"
#include "executor/lab_test.hpp"
#include "executor/live/live_setup.hpp"

namespace orrery {
namespace {

/// A core with the jobs of one array, whose requests are those of another fleet.
class RequestRenewalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setup_ = LiveSetup::make(lab_facts(), store_texts(lab_setup()), {}).value();
    core_ = std::make_unique<Core>(setup_->control());
    core_->resume();
  }
  void submit(std::size_t count) {
    const std::string text = fmt::format(
        "apiVersion: orrery/v1\nkind: Batch\nname: a\nroles: [{{accelerators: 8}}]\n"
        "launch: {{command: [sh]}}\narray: {{count: {}}}\n",
        count);
    Result<std::vector<SubmitJob>> read =
        setup_->intake().read({text, "job.yaml"}, core_->state(), now_);
    ASSERT_TRUE(read) << read.error().text();
    for (SubmitJob& job : *read) {
      (void)core_->handle({now_, std::move(job), {}});
      jobs_.push_back(JobId(static_cast<std::uint32_t>(jobs_.size())));
    }
  }
  /// Gives a job a request that no fleet would give it.
  void change(JobId id) {
    JobRequest other = core_->state().job(id).submission->request;
    other.checkpoint_interval = Duration::seconds(77);
    ASSERT_TRUE(core_->handle({now_, ResolveJob{id, other}, {}}).answer.status);
  }
  [[nodiscard]] std::vector<JobId> take() {
    std::vector<JobId> taken;
    for (const ResolveJob& job : renewal_.take(core_->state(), setup_->intake(), now_)) {
      EXPECT_EQ(job.request.name, core_->state().job(job.job).name);
      EXPECT_NE(job.request.checkpoint_interval, Duration::seconds(77));
      taken.push_back(job.job);
    }
    return taken;
  }

  const Instant now_ = Instant() + Duration::hours(1);
  std::unique_ptr<LiveSetup> setup_;
  std::unique_ptr<Core> core_;
  std::vector<JobId> jobs_;
  RequestRenewal renewal_;
};

TEST_F(RequestRenewalTest, JobsOfAnArrayMayBeAddedInAnyOrder) {
  submit(8);
  for (const std::size_t i : {5U, 7U, 2U, 3U, 0U}) {
    change(jobs_[i]);
    renewal_.add(jobs_[i]);
  }
  EXPECT_EQ(take(), (std::vector{jobs_[0], jobs_[2], jobs_[3], jobs_[5], jobs_[7]}));
  EXPECT_TRUE(renewal_.empty());
}

TEST_F(RequestRenewalTest, ATurnIsBoundedAlsoWhereNoRequestChanges) {
  submit(2 * RequestRenewal::kJobs + 1);
  change(jobs_.back());
  renewal_.add_waiting(core_->state());
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(take().empty());
  ASSERT_FALSE(renewal_.empty());
  EXPECT_EQ(take(), std::vector{jobs_.back()});
  EXPECT_TRUE(renewal_.empty());
}

TEST_F(RequestRenewalTest, AJobThatHasEndedIsPassedOver) {
  submit(2);
  change(jobs_[0]);
  change(jobs_[1]);
  renewal_.add_waiting(core_->state());
  (void)core_->handle({now_, CancelJob{jobs_[0]}, {}});
  EXPECT_EQ(take(), std::vector{jobs_[1]});
}

}  // namespace
}  // namespace orrery

#include "verbs/jobs/job_change.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

using Run = JobChangeReport::Run;

class JobChangeTest : public LiveClusterTest {
 protected:
  [[nodiscard]] Result<JobChangeReport> change(const JobChange& asked) {
    return change_jobs(session(), asked, progress());
  }
};

JobChange change_of(JobChangeKind kind, std::vector<std::string> jobs) {
  return {.kind = kind, .selection = {.jobs = std::move(jobs)}};
}

TEST_F(JobChangeTest, EachJobIsCancelledUnderARequestOfItsOwn) {
  answers<v1::CancelJobRequest>("CancelJob", v1::CancelJobResponse());
  const auto report = change(change_of(JobChangeKind::kCancel, {"7", "8", "7"}));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(text_, "job 7 cancelled\njob 8 cancelled\n");
  EXPECT_TRUE(report->status());
  EXPECT_EQ(report->rest().text, "");
  EXPECT_EQ(report->rest().json, Json::parse(R"({"cancelled": ["7", "8"], "failed": []})"));
  const auto heard = this->heard<v1::CancelJobRequest>("CancelJob");
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_NE(heard[0].request_id(), heard[1].request_id());
}

TEST_F(JobChangeTest, ARefusalKeepsNoOtherJobFromItsChange) {
  on<v1::HoldJobRequest>("HoldJob", [](const v1::HoldJobRequest& request) {
    if (request.id() == 7) return refuse(grpc::StatusCode::FAILED_PRECONDITION, "job 7 has ended");
    return answer_with(v1::Job());
  });
  const auto report = change(change_of(JobChangeKind::kHold, {"7", "8"}));
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(text_, "job 8 held\n");
  EXPECT_EQ(messages_, "orrery: job 7 has ended\n");
  EXPECT_EQ(report->rest().json,
            Json::parse(R"({"held": ["8"], "failed": [{"id": "7", "why": "job 7 has ended"}]})"));
  ASSERT_FALSE(report->status());
  EXPECT_EQ(report->status().error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(report->status().error().text(), "1 of 2 jobs could not be held");
}

TEST_F(JobChangeTest, OnlyAHeldJobIsReleased) {
  v1::Job waits = job_named(3, "train", "queued");
  waits.set_waiting("waits for 4 h100");
  answers<v1::GetJobRequest>("GetJob", waits);
  const auto report = change(change_of(JobChangeKind::kRelease, {"3"}));
  ASSERT_TRUE(report);
  EXPECT_EQ(messages_, "orrery: job 3 is not held: waits for 4 h100\n");
  EXPECT_TRUE(heard<v1::ReleaseJobRequest>("ReleaseJob").empty());
  waits.set_hold("owner");
  answers<v1::GetJobRequest>("GetJob", waits);
  answers<v1::ReleaseJobRequest>("ReleaseJob", waits);
  EXPECT_TRUE(change(change_of(JobChangeKind::kRelease, {"3"}))->status());
  EXPECT_EQ(heard<v1::ReleaseJobRequest>("ReleaseJob").size(), 1u);
}

TEST(CheckHeldTest, ARunningJobIsNotHeldAndAnEndedOneIsLeftToTheController) {
  v1::Job job = job_named(4, "a", "running");
  EXPECT_EQ(check_held(job).error().text(), "job 4 is not held: it is running");
  *job.mutable_ended() = seconds_from_noon(0);
  EXPECT_TRUE(check_held(job));
}

TEST_F(JobChangeTest, ARequeueNamesTheAttemptThatItEnds) {
  v1::Job job = job_named(5, "train", "running");
  job.set_attempt(3);
  answers<v1::GetJobRequest>("GetJob", job);
  answers<v1::RequeueJobRequest>("RequeueJob", job);
  JobChange asked = change_of(JobChangeKind::kRequeue, {"5"});
  asked.hold = true;
  EXPECT_TRUE(change(asked)->status());
  const auto heard = this->heard<v1::RequeueJobRequest>("RequeueJob");
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].attempt(), 3u);
  EXPECT_TRUE(heard[0].hold());
}

TEST_F(JobChangeTest, ADryRunListsTheJobsAndChangesNone) {
  on<v1::GetJobRequest>("GetJob", [](const v1::GetJobRequest& request) {
    v1::Job job = job_named(request.id(), "tr\nain", request.id() == 2 ? "failed" : "running");
    if (request.id() == 2) *job.mutable_ended() = seconds_from_noon(-60);
    return answer_with(job);
  });
  JobChange asked = change_of(JobChangeKind::kCancel, {"1", "2"});
  asked.dry_run = true;
  const auto report = change(asked);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(text_, "");
  EXPECT_EQ(messages_, "orrery: job 2 has already ended (failed)\n");
  EXPECT_EQ(report->rest().text,
            "ID  NAME     STATE\n 1  tr\\nain  running\n1 job would be cancelled\n");
  EXPECT_EQ(report->rest().json["would_cancel"], Json::array({"1"}));
  EXPECT_EQ(report->status().error().text(), "1 of 2 jobs could not be cancelled");
  EXPECT_TRUE(heard<v1::CancelJobRequest>("CancelJob").empty());
}

TEST_F(JobChangeTest, AFilterWithoutMatchIsNoFailure) {
  answers<v1::ListJobsRequest>("ListJobs", v1::ListJobsResponse());
  const auto report = change({.kind = JobChangeKind::kHold, .selection = {.user = "ada"}});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rest().text, "no job matches\n");
  EXPECT_TRUE(report->status());
}

TEST_F(JobChangeTest, OneUnknownNameIsTheErrorAndOneOfSeveralIsAMessage) {
  answers<v1::ListJobsRequest>("ListJobs", v1::ListJobsResponse());
  answers<v1::CancelJobRequest>("CancelJob", v1::CancelJobResponse());
  const auto alone = change(change_of(JobChangeKind::kCancel, {"swep"}));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().kind, ErrorKind::kInput);
  const auto both = change(change_of(JobChangeKind::kCancel, {"swep", "7"}));
  ASSERT_TRUE(both);
  EXPECT_EQ(messages_,
            "orrery: no job named \"swep\" is waiting or running; `orrery jobs` shows names and "
            "numbers\n");
  EXPECT_EQ(both->rest().json["failed"][0]["name"], "swep");
  EXPECT_EQ(both->status().error().text(), "1 of 2 jobs could not be cancelled");
}

TEST(JobChangeReportTest, ANameStandsBeforeARefusalAndIsEscaped) {
  JobChangeReport report(words_of(JobChangeKind::kChange), Run::kReal);
  EXPECT_EQ(report.add_done({7, "a\x1b", "running"}), "job 7 (a\\x1b) changed\n");
  EXPECT_EQ(report.add_failed({8, "b\nc", "running"}, {ErrorKind::kInput, "too high", {}}),
            "orrery: b\\nc: too high\n");
  EXPECT_EQ(report.rest().json["failed"][0], Json::parse(R"({"id": "8", "why": "too high"})"));
}

TEST(ChangeRequestTest, TimesAreSecondsAndNoneIsZero) {
  const auto request = change_request(
      {.kind = JobChangeKind::kChange, .priority = -5, .time_limit = "90 min", .estimate = "none"});
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->priority(), -5);
  EXPECT_DOUBLE_EQ(request->time_limit_s(), 5400);
  EXPECT_TRUE(request->has_estimate_s());
  EXPECT_DOUBLE_EQ(request->estimate_s(), 0);
  const auto priority = change_request({.kind = JobChangeKind::kChange, .priority = 0});
  EXPECT_TRUE(priority->has_priority());
  EXPECT_FALSE(priority->has_time_limit_s());
}

TEST(ChangeRequestTest, WhatMakesNoSenseIsRefusedWithItsOption) {
  const auto text = [](const JobChange& asked) { return check(asked).error().text(); };
  JobChange asked = change_of(JobChangeKind::kChange, {"7"});
  EXPECT_EQ(text(asked), "nothing to change: expected --priority, --time-limit or --estimate");
  asked.time_limit = "-2 h";
  EXPECT_TRUE(text(asked).starts_with("--time-limit: ")) << text(asked);
  asked.time_limit = "";
  asked.estimate = "soon";
  EXPECT_TRUE(text(asked).starts_with("--estimate: ")) << text(asked);
  // The options of another kind are not looked at.
  asked.kind = JobChangeKind::kHold;
  EXPECT_TRUE(check(asked));
  asked.selection.jobs.clear();
  EXPECT_TRUE(text(asked).starts_with("nothing to hold: ")) << text(asked);
}

}  // namespace
}  // namespace orrery

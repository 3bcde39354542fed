#include "verbs/jobs/job_answer.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

class JobAnswerTest : public LiveClusterTest {
 protected:
  /// A cluster that has the jobs of a list, by the exact name or the pattern of an array.
  void has(const std::string& pattern, const std::vector<v1::Job>& jobs) {
    on<v1::ListJobsRequest>("ListJobs", [pattern, jobs](const v1::ListJobsRequest& request) {
      v1::ListJobsResponse response;
      if (request.name() == pattern) *response.mutable_jobs() = {jobs.begin(), jobs.end()};
      return answer_with(response);
    });
  }
};

TEST(JobFilterTest, AStateIsAskedOfEndedJobsToo) {
  EXPECT_FALSE(request_of(JobFilter()).all());
  EXPECT_TRUE(request_of({.phase = "failed"}).all());
  EXPECT_TRUE(request_of({.all = true}).all());
  const v1::ListJobsRequest request =
      request_of({.tenant = "lab", .phase = "held", .name = "train-*", .user = "ada"});
  EXPECT_EQ(request.tenant(), "lab");
  EXPECT_EQ(request.phase(), "held");
  EXPECT_EQ(request.name(), "train-*");
  EXPECT_EQ(request.user(), "ada");
}

TEST_F(JobAnswerTest, AListHasARowForEachJobAndProgramsGetTheMessage) {
  has("", {job_named(7, "train", "running"), job_named(12, "eval", "queued")});
  const Result<LiveAnswer> answer = answer_jobs(call(), {});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->text,
            "ID  NAME   USER  TENANT  STATE    SINCE  TIME  ACCELERATORS  WHERE\n"
            " 7  train                running                          0\n"
            "12  eval                 queued                           0\n");
  EXPECT_EQ(answer_json(*answer->message)["jobs"][1]["name"], "eval");
}

TEST_F(JobAnswerTest, AnEmptyListIsOneLine) {
  has("", {});
  EXPECT_EQ(answer_jobs(call(), {})->text, "no jobs\n");
}

TEST_F(JobAnswerTest, ANumberAsksForThatJobAlone) {
  answers<v1::GetJobRequest>("GetJob", job_named(7, "train", "queued"));
  const Result<LiveAnswer> answer = answer_job(call(), "7");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->text, "job    7 (train)\nstate  queued\n");
  EXPECT_EQ(heard<v1::GetJobRequest>("GetJob").at(0).id(), 7u);
}

TEST_F(JobAnswerTest, ANameOfOneJobShowsItsDetails) {
  has("train", {job_named(9, "train", "failed")});
  answers<v1::GetJobRequest>("GetJob", job_named(9, "train", "failed"));
  EXPECT_EQ(answer_job(call(), "train")->text, "job    9 (train)\nstate  failed\n");
  EXPECT_TRUE(heard<v1::ListJobsRequest>("ListJobs").at(0).all());
}

TEST_F(JobAnswerTest, ANameOfAnArrayCountsItsPhases) {
  has("sweep[*]", {job_named(1, "sweep[0]", "running"), job_named(2, "sweep[1]", "queued"),
                   job_named(3, "sweep[2]", "running")});
  const Result<LiveAnswer> answer = answer_job(call(), "sweep");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(answer->text.starts_with("3 jobs: 1 queued, 2 running\nID  NAME")) << answer->text;
  EXPECT_EQ(heard<v1::ListJobsRequest>("ListJobs").size(), 2u);
}

TEST_F(JobAnswerTest, ANameThatNoJobHasIsToldWithWhereToLook) {
  has("other", {});
  const Result<LiveAnswer> answer = answer_job(call(), "trian");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kInput);
  EXPECT_EQ(answer.error().text(),
            "there is no job \"trian\": expected a number or a name; `orrery jobs --all` lists "
            "them");
}

TEST(JobGroupTextTest, AHostilePhaseStaysInItsLine) {
  const std::string text = job_group_text({}, {job_named(1, "a", "x\n\x1b[2J")});
  EXPECT_TRUE(text.starts_with("1 job: 1 x\\n\\x1b[2J\n")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_F(JobAnswerTest, AnExplanationEndsWithOneLineBreakAndIsEscaped) {
  v1::Explanation why;
  why.set_text("waits for 4 h100\nno \x07room");
  answers<v1::ExplainJobRequest>("ExplainJob", why);
  EXPECT_EQ(explain_job(call(), "3")->text, "waits for 4 h100\nno \\x07room\n");
  why.set_text("done\n");
  answers<v1::ExplainJobRequest>("ExplainJob", why);
  EXPECT_EQ(explain_job(call(), "3")->text, "done\n");
}

TEST_F(JobAnswerTest, OfSeveralJobsOneThatWaitsIsExplained) {
  has("chat[*]", {job_named(1, "chat[0]", "failed"), job_named(2, "chat[1]", "running"),
                  job_named(3, "chat[2]", "queued")});
  v1::Explanation why;
  why.set_text("waits");
  answers<v1::ExplainJobRequest>("ExplainJob", why);
  EXPECT_EQ(explain_job(call(), "chat")->text, "waits\n");
  EXPECT_EQ(heard<v1::ExplainJobRequest>("ExplainJob").at(0).id(), 3u);
  has("chat[*]", {job_named(1, "chat[0]", "failed"), job_named(2, "chat[1]", "running")});
  ASSERT_TRUE(explain_job(call(), "chat"));
  EXPECT_EQ(heard<v1::ExplainJobRequest>("ExplainJob").at(1).id(), 2u);
}

TEST_F(JobAnswerTest, ProgramsGetTheServiceWithItsFirstReplica) {
  v1::Job first = job_named(4, "chat[0]", "running");
  first.set_kind("Serve");
  has("chat[*]", {first, job_named(5, "chat[1]", "running")});
  first.mutable_service()->set_name("chat");
  first.mutable_service()->set_model("m");
  answers<v1::GetJobRequest>("GetJob", first);
  const Result<LiveAnswer> answer = answer_job(call(), "chat");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_NE(answer->text.find("service chat: model m"), std::string::npos) << answer->text;
  EXPECT_EQ(answer_json(*answer->message)["jobs"][0]["service"]["model"], "m");
}

TEST_F(JobAnswerTest, ARefusalKeepsTheControllersWords) {
  refuses<v1::ExplainJobRequest>("ExplainJob", grpc::StatusCode::NOT_FOUND, "there is no job 3");
  const Result<LiveAnswer> answer = explain_job(call(), "3");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), "there is no job 3");
}

TEST(JobIdsTest, NumbersAreReadInOrderAndTheFirstThatIsNoneIsNamed) {
  EXPECT_EQ(job_ids({"8", "7", "18446744073709551615"}).value(),
            (std::vector<std::uint64_t>{8, 7, 18'446'744'073'709'551'615u}));
  EXPECT_TRUE(job_ids({}).value().empty());
  for (const char* wrong : {"seven", "", "7x", "-1", "+7", " 7", "18446744073709551616"}) {
    const auto ids = job_ids({"1", wrong, "nor this"});
    ASSERT_FALSE(ids) << wrong;
    EXPECT_EQ(ids.error().text(), "job \"" + std::string(wrong) +
                                      "\": expected the number of a job, as listed by `orrery jobs "
                                      "--all`");
  }
}

}  // namespace
}  // namespace orrery

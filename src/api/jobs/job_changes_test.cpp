// Hold, release, requeue and change over the API: permitted callers, refusals, views.
#include "api/serving_test.hpp"

namespace orrery {
namespace {

class JobChangesTest : public ServerTest {
 protected:
  std::uint64_t submit(const std::string& more = "") {
    v1::SubmitJobRequest asked;
    asked.set_spec(kSubmittedJob + more);
    const auto answer = client("user").call<v1::SubmitJobResponse>("SubmitJob", asked);
    EXPECT_TRUE(answer) << answer.error().text();
    return answer->id();
  }
  template <class Request>
  Result<v1::Job> call(const std::string& token, const char* method, Request request,
                       std::uint64_t id) {
    request.set_id(id);
    return client(token).template call<v1::Job>(method, request);
  }
  v1::Job job(std::uint64_t id) {
    return call("viewer", "GetJob", v1::GetJobRequest(), id).value();
  }
};

TEST_F(JobChangesTest, AnOperatorsHoldIsReleasedByAnOperatorAlone) {
  const std::uint64_t id = submit();
  ASSERT_FALSE(call("viewer", "HoldJob", v1::HoldJobRequest(), id));
  ASSERT_TRUE(call("user", "HoldJob", v1::HoldJobRequest(), id));
  EXPECT_EQ(job(id).hold(), "owner");
  EXPECT_NE(job(id).waiting().find("held by its owner"), std::string::npos);
  ASSERT_TRUE(call("operator", "HoldJob", v1::HoldJobRequest(), id));
  EXPECT_EQ(job(id).hold(), "operator");
  ASSERT_TRUE(call("user", "HoldJob", v1::HoldJobRequest(), id));
  EXPECT_EQ(job(id).hold(), "operator") << "an owner does not weaken it";
  const auto refused = call("user", "ReleaseJob", v1::ReleaseJobRequest(), id);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("held by an operator"), std::string::npos);
  ASSERT_TRUE(call("operator", "ReleaseJob", v1::ReleaseJobRequest(), id));
  EXPECT_EQ(job(id).hold(), "");
}

TEST_F(JobChangesTest, ASubmissionMayBeHeldAtOnce) {
  EXPECT_EQ(job(submit("hold: true\n")).hold(), "owner");
}

TEST_F(JobChangesTest, ChangesAreShownAndWhatIsNoValueIsRefused) {
  const std::uint64_t id = submit("priority: 3\ntime_limit: 1 h\n");
  v1::ChangeJobRequest change;
  change.set_priority(70);
  change.set_estimate_s(600);
  const auto changed = call("user", "ChangeJob", change, id);
  ASSERT_TRUE(changed) << changed.error().text();
  EXPECT_EQ(changed->priority(), 70);
  EXPECT_EQ(changed->time_limit_s(), 3600) << "it was not named";
  EXPECT_EQ(changed->estimate_s(), 600);
  change.Clear();
  change.set_time_limit_s(0);
  EXPECT_EQ(call("user", "ChangeJob", change, id)->time_limit_s(), 0);
  EXPECT_EQ(job(id).priority(), 70);
  const auto refusal = [&](auto set) {
    v1::ChangeJobRequest wrong;
    set(wrong);
    const auto answer = call("user", "ChangeJob", wrong, id);
    return answer ? std::string() : answer.error().text();
  };
  EXPECT_NE(refusal([](auto&) {}).find("nothing to change"), std::string::npos);
  EXPECT_NE(refusal([](auto& wrong) { wrong.set_priority(1001); }).find("-1000 to 1000"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& wrong) { wrong.set_estimate_s(-1); }).find("estimate_s"),
            std::string::npos);
}

TEST_F(JobChangesTest, AJobSaysByWhenItHasToStart) {
  const auto notes = [&](const std::string& more) {
    const v1::Job shown = job(submit(more));
    return shown.notes_size() == 0 ? std::string() : shown.notes(0);
  };
  const std::string told = notes("estimate: 1 h\ndeadline: 2100-01-01T00:00:00Z\n");
  EXPECT_TRUE(told.starts_with("to meet its deadline it has to start within ")) << told;
  EXPECT_EQ(notes("estimate: 1 h\n"), "");
  EXPECT_EQ(notes("deadline: 2100-01-01T00:00:00Z\n"), "") << "nobody knows how long it takes";
}

TEST_F(JobChangesTest, ASubmissionIsToldAtOnceWhetherItsDeadlineAndBudgetCanBeKept) {
  const auto answer = [&](const std::string& more, const std::string& token = "user") {
    v1::SubmitJobRequest asked;
    asked.set_spec(kSubmittedJob + more);
    asked.set_dry_run(true);
    return client(token).call<v1::SubmitJobResponse>("SubmitJob", asked);
  };
  const auto kept = answer("estimate: 2 h\nbudget: $5000\n");
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_NE(kept->note().find("it takes 2 h and costs $"), std::string::npos) << kept->note();
  const auto jobs = client().call<v1::ListJobsResponse>("ListJobs", v1::ListJobsRequest());
  EXPECT_EQ(jobs->jobs_size(), 0) << "it was not submitted";
  const auto dear = answer("estimate: 2 h\nbudget: $1\n");
  ASSERT_FALSE(dear);
  EXPECT_NE(dear.error().text().find("budget: its cheapest placement, 1 "), std::string::npos);
  EXPECT_NE(dear.error().text().find(" would do"), std::string::npos);
  EXPECT_EQ(answer("estimate: 2 h\n")->note(), "");
  EXPECT_FALSE(answer("budget: $5000\n", "viewer")) << "it may not submit";
  v1::SubmitJobRequest asked;
  asked.set_spec(kSubmittedJob +
                 std::string("estimate: 900000 h\ndeadline: 2100-01-01T00:00:00Z\n"));
  const auto late = client("user").call<v1::SubmitJobResponse>("SubmitJob", asked);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().text().find("deadline: at its quickest, on 1 "), std::string::npos);
}

TEST_F(JobChangesTest, WhatHasEndedOrDoesNotRunIsRefusedWithItsState) {
  const std::uint64_t id = submit("priority: 7\ntime_limit: 1 h\n");
  const auto waits = call("user", "RequeueJob", v1::RequeueJobRequest(), id);
  ASSERT_FALSE(waits);
  EXPECT_NE(waits.error().text().find("does not run"), std::string::npos);
  v1::CancelJobRequest cancel;
  cancel.set_id(id);
  ASSERT_TRUE(client("user").call<v1::CancelJobResponse>("CancelJob", cancel));
  for (const char* method : {"HoldJob", "ReleaseJob", "RequeueJob", "ChangeJob"}) {
    const auto answer = call("user", method, v1::HoldJobRequest(), id);
    ASSERT_FALSE(answer) << method;
    EXPECT_NE(answer.error().text().find("already ended (cancelled)"), std::string::npos) << method;
  }
  EXPECT_NE(job(id).spec().find("command"), std::string::npos) << "kept after the end";
  EXPECT_EQ(job(id).kind(), "Batch");
  EXPECT_EQ(job(id).priority(), 7);
  EXPECT_EQ(job(id).time_limit_s(), 3600);
}

TEST_F(JobChangesTest, AJobSaysForWhichJobsItWaits) {
  const std::uint64_t first = submit();
  const std::uint64_t next = submit(fmt::format("after: ['{}']\n", first));
  EXPECT_EQ(job(next).waiting(), fmt::format("waits for job {} (one) to finish", first));
  const std::uint64_t last = submit(
      fmt::format("after: [{{job: '{}', when: notok}}, {{job: '{}', when: any}}]\n", first, next));
  EXPECT_EQ(job(last).waiting(),
            fmt::format("waits for job {} (one) to end and job {} (one) to fail", next, first));
}

}  // namespace
}  // namespace orrery

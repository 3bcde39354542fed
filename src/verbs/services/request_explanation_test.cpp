#include "verbs/services/request_explanation.hpp"

#include <gtest/gtest.h>

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

TEST(ExplanationTextTest, EachDecisionHasTheReplicasThatItCompared) {
  EXPECT_EQ(explanation_text(Json::parse(R"({"request": "r1", "decisions": [
              {"time": "2026-11-29T12:00:00Z", "service": "chat", "epoch": 7, "tokens": 40,
               "outcome": "sent", "candidates": [
                {"job": 3, "attempt": 1, "verdict": "busier", "in_flight": 2, "tokens": 80,
                 "seconds_per_token": 0.0021, "expected_wait_s": 0.25},
                {"job": 4, "attempt": 2, "verdict": "chosen", "in_flight": 0, "tokens": 0,
                 "seconds_per_token": 0.002, "expected_wait_s": 0.08}]}]})")),
            "2026-11-29T12:00:00Z: service chat, 40 tokens, table 7: sent\n"
            "REPLICA  ATTEMPT  VERDICT  IN FLIGHT  TOKENS  S/TOKEN  EXPECTED WAIT, S\n"
            "      3        1  busier           2      80   0.0021              0.25\n"
            "      4        2  chosen           0       0    0.002              0.08\n");
  EXPECT_EQ(explanation_text(Json::parse(R"({"request": "r1", "decisions": [
              {"time": "2026-11-29T12:00:00Z", "service": "chat", "epoch": 7, "tokens": 40,
               "continues": true, "outcome": "wait", "candidates": []}]})"))
                .substr(0, 63),
            "2026-11-29T12:00:00Z: the rest of a stream that broke off, serv");
  EXPECT_EQ(explanation_text(Json::parse(R"({"replica": 3})")), "{\n \"replica\": 3\n}\n");
}

using RequestExplanationTest = LiveClusterTest;

TEST_F(RequestExplanationTest, AnIdIsCheckedAndAClusterWithoutGatewaysIsTold) {
  write_cluster_directory();
  answers<v1::ListJobsRequest>("ListJobs", v1::ListJobsResponse());
  EXPECT_NE(explain_request(call(), "../x").error().text().find("expected the x-request-id"),
            std::string::npos);
  EXPECT_EQ(explain_request(call(), "cmpl-1").error().text(), "no gateway of the cluster is known");
}

TEST_F(RequestExplanationTest, AGatewayThatCannotBeReachedIsAnError) {
  write_cluster_directory();
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job_named(7, "chat", "running");
  jobs.mutable_jobs(0)->set_kind("Serve");
  answers<v1::ListJobsRequest>("ListJobs", jobs);
  v1::Job job = jobs.jobs(0);
  job.mutable_service()->add_endpoints("http://127.0.0.1:1");
  answers<v1::GetJobRequest>("GetJob", job);
  const auto answer = explain_request(call(), "cmpl-1");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kEnvironment) << answer.error().text();
}

}  // namespace
}  // namespace orrery

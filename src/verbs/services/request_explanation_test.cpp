#include "verbs/services/request_explanation.hpp"

#include <gtest/gtest.h>

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

TEST(ExplanationTextTest, EachDecisionHasTheReplicasThatItCompared) {
  EXPECT_EQ(explanation_text(Json::parse(R"({"request": "r1", "decisions": [
              {"time": "2026-11-29T12:00:00Z", "service": "chat", "epoch": 7, "tokens": 2100,
               "prompt_tokens": 2048, "outcome": "replica", "candidates": [
                {"job": 3, "attempt": 1, "verdict": "less cached", "in_flight": 2, "tokens": 80,
                 "cached_tokens": 0, "expected_ttft_s": 0.8, "expected_tpot_s": 0.02,
                 "expected_wait_s": 1.8, "usd": 0.002},
                {"job": 4, "attempt": 2, "verdict": "chosen", "in_flight": 0, "tokens": 0,
                 "cached_tokens": 1920, "expected_ttft_s": 0.21, "expected_tpot_s": 0.02,
                 "expected_wait_s": 1.25, "usd": 0.0005},
                {"job": 5, "attempt": 1, "verdict": "full"}]}]})")),
            "job 4 of chat: 1920 of 2048 prompt tokens cached, first token in 0.21 s expected, "
            "the last in 1.2 s, for $0.0005\n"
            "2026-11-29T12:00:00Z: service chat, 2100 tokens, table 7: replica\n"
            "not chosen: 1 with less of the prompt cached, 1 full\n"
            "REPLICA  ATTEMPT  VERDICT      IN FLIGHT  TOKENS  CACHED  TTFT, S  TPOT, S  END, S"
            "     USD\n"
            "      3        1  less cached          2      80       0      0.8     0.02     1.8"
            "   0.002\n"
            "      4        2  chosen               0       0    1920     0.21     0.02    1.25"
            "  0.0005\n"
            "      5        1  full\n");
  EXPECT_EQ(explanation_text(Json::parse(R"({"request": "r1", "decisions": [
              {"time": "2026-11-29T12:00:00Z", "service": "chat", "epoch": 7, "tokens": 40,
               "continues": true, "outcome": "wait", "candidates": []}]})"))
                .substr(0, 63),
            "2026-11-29T12:00:00Z: the rest of a stream that broke off, serv");
  EXPECT_EQ(explanation_text(Json::parse(R"({"replica": 3})")), "{\n \"replica\": 3\n}\n");
}

TEST(ExplanationTextTest, APromptThatAnotherReplicaComputesIsTold) {
  const std::string text = explanation_text(Json::parse(R"({"request": "r1", "decisions": [
      {"time": "2026-11-29T12:00:00Z", "service": "chat", "epoch": 7, "tokens": 2100,
       "prompt_tokens": 2048, "outcome": "replica",
       "remote_prompt": {"transfer_s": 0.04, "local_job": 4, "local_ttft_s": 3.2},
       "candidates": [
        {"job": 3, "attempt": 1, "verdict": "prefill"},
        {"job": 4, "attempt": 1, "verdict": "chosen", "expected_ttft_s": 1.5},
        {"job": 5, "attempt": 1, "verdict": "only prefill"}]}]})"));
  EXPECT_EQ(text.substr(0, text.find("2026")),
            "job 4 of chat: 0 of 2048 prompt tokens cached, first token in 1.5 s expected\n"
            "job 3 computes its prompt, whose cache is sent in 0.04 s; job 4 alone: first token in "
            "3.2 s\n");
  EXPECT_NE(text.find("not chosen: 1 for prompts alone, which would not pay"), std::string::npos);
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

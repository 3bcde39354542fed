// verbs/fork/service_fork_test.cpp - a service as it runs, and with a change.
#include "verbs/fork/service_fork.hpp"

#include <gtest/gtest.h>

#include "verbs/fork/what_if.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

class ServiceFork : public testing::Test {
 protected:
  ServiceFork() {
    service_.name = "chat";
    service_.engine.name = EngineName::kVllm;
    service_.targets = {.ttft_s = 0.5, .tpot_s = 0.05};
    const ReplicaPace pace{.prefill_tokens_s = 8000, .step_s = 0.01, .step_full_s = 0.02};
    for (std::uint64_t job = 7; job < 9; ++job) {
      service_.replicas.push_back({.job = job,
                                   .report = {.phase = ReplicaPhase::kReady,
                                              .endpoint = "10.0.0.1:1",
                                              .slots = 16,
                                              .pace = pace,
                                              .kv_tokens = 40'000},
                                   .usd_h = 2});
    }
    asked_.service = "chat";
    asked_.requests = files_.write("requests.yaml",
                                   "apiVersion: orrery/v1\nkind: Requests\nspan: 2 min\nrate: 12\n"
                                   "sessions: {turns: 3, think: 5 s, shared: 1024}\n");
  }

  [[nodiscard]] Json answer() const {
    const Result<VerbAnswer> answer = service_what_if(service_, asked_);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
    return answer ? answer->json : Json();
  }
  [[nodiscard]] std::string refusal() const {
    const Result<VerbAnswer> answer = service_what_if(service_, asked_);
    return answer ? "accepted" : answer.error().text();
  }

  ScratchFiles files_;
  RunningService service_;
  ServiceChange asked_;
};

TEST_F(ServiceFork, MoreReplicasAnswerSoonerAndCostMore) {
  asked_.replicas = 5;
  const Json json = answer();
  const Json& before = json["as_is"];
  const Json& after = json["changed"];
  EXPECT_EQ(before["replicas"], 2);
  EXPECT_EQ(after["replicas"], 5);
  EXPECT_EQ(before["policy"], "cost");
  EXPECT_LT(after["ttft_s"]["p99"], before["ttft_s"]["p99"]);
  EXPECT_GT(after["slo_attained"], before["slo_attained"]);
  EXPECT_GT(after["usd_per_million_tokens"], before["usd_per_million_tokens"]);
  const VerbAnswer shown = *service_what_if(service_, asked_);
  EXPECT_NE(shown.text.find("as it is"), std::string::npos) << shown.text;
}

TEST_F(ServiceFork, ARouterThatForgetsCachesFindsLessInThem) {
  asked_.router = "random";
  const Json json = answer();
  EXPECT_EQ(json["changed"]["policy"], "random");
  EXPECT_LT(json["changed"]["hit_rate"], json["as_is"]["hit_rate"]);
}

TEST_F(ServiceFork, TheSlowestOfUnlikeReplicasStays) {
  service_.replicas[0].report.pace.step_full_s = 0.2;
  asked_.replicas = 1;
  const Json json = answer();
  EXPECT_GT(json["changed"]["tpot_s"]["p50"], json["as_is"]["tpot_s"]["p50"]);
}

TEST_F(ServiceFork, AHalfHasHalfOfTheRequests) {
  asked_.replicas = 3;
  const double all = answer()["requests"].get<double>();
  asked_.half = "second";
  EXPECT_NEAR(answer()["requests"].get<double>(), all / 2, 1);
}

TEST_F(ServiceFork, WrongQuestionsAreRefused) {
  EXPECT_EQ(refusal(), "nothing to change: expected --replicas or --router");
  asked_.replicas = 5000;
  EXPECT_EQ(refusal(), "--replicas: 5000: expected at most 4096");
  asked_.replicas = 3;
  asked_.router = "rand";
  EXPECT_TRUE(refusal().starts_with("--router: \"rand\" is none of random")) << refusal();
  asked_.router = "";
  service_.replicas[1].report.pace = {};
  EXPECT_EQ(refusal(), "job 8, a replica of chat, did not measure its pace");
  asked_.requests = "";
  EXPECT_EQ(refusal(), "--requests: required of a service");
}

TEST(NumberOfService, IsFoundByNameOrNumberUnlessTheNameIsOfSeveral) {
  const std::vector<KnownService> known{{3, "chat"}, {9, "chat"}, {12, "code"}};
  const auto refusal = [&](const std::string& asked) {
    const Result<std::uint32_t> number = number_of_service(known, asked);
    return number ? "accepted" : number.error().text();
  };
  EXPECT_EQ(*number_of_service(known, "code"), 12u);
  EXPECT_EQ(*number_of_service(known, "9"), 9u);
  EXPECT_EQ(refusal("chat"),
            "--service: \"chat\" names 2 services: expected the number of one, 3 or 9");
  EXPECT_EQ(refusal("cods"), "--service: no service \"cods\", did you mean \"code\"?");
}

}  // namespace
}  // namespace orrery

#include "verbs/service_simulation/service_simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

constexpr std::string_view kSpec = R"(apiVersion: orrery/v1
kind: Serve
name: chat
roles: [{name: replica, replicas: 2, accelerators: 1}]
slo: {ttft_p99: 800 ms, tpot_p99: 50 ms}
revisions:
- id: r1
  model: chat
  artifact: /models/chat
  engine: {name: vllm, arguments: [--max-num-seqs, "16"]}
)";
constexpr std::string_view kPace =
    R"({"step_s": 0.005, "sequence_s": 3e-5, "context_token_s": 4e-8, "prompt_token_s": 3e-5})";
constexpr std::string_view kRequests =
    "apiVersion: orrery/v1\nkind: Requests\nspan: 5 min\nrate: 4\n"
    "sessions: {turns: 3, think: 5 s, shared: 1024}\n";

class ServiceSimulation : public testing::Test {
 protected:
  ServiceSimulation() {
    asked_.serve = files_.write("chat.yaml", std::string(kSpec));
    asked_.pace.file = files_.write("pace.json", std::string(kPace));
    asked_.requests.file = files_.write("requests.yaml", std::string(kRequests));
  }

  [[nodiscard]] VerbAnswer answer() const {
    Result<VerbAnswer> answer = simulate_service({}, asked_);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
    return answer ? *std::move(answer) : VerbAnswer{};
  }
  [[nodiscard]] std::string refusal() const {
    const Result<VerbAnswer> answer = simulate_service({}, asked_);
    return answer ? "it was accepted" : answer.error().text();
  }

  ScratchFiles files_;
  ServiceSimulationOptions asked_;
};

TEST_F(ServiceSimulation, ShowsLatenciesAgainstTheTargetsOfTheSpec) {
  const VerbAnswer shown = answer();
  const Json& run = shown.json["services"][0];
  EXPECT_EQ(shown.json["replicas"], 2);
  EXPECT_EQ(shown.json["sequences_max"], 16) << "as the engine's arguments say";
  EXPECT_EQ(shown.json["target_ttft_s"], 0.8);
  EXPECT_EQ(run["completed"], run["requests"]);
  EXPECT_GT(run["slo_attained"], 0.5);
  EXPECT_GT(run["hit_rate"], 0.1);
  EXPECT_TRUE(run["usd_per_million_tokens"].is_null()) << "no price is known of a measured pace";
  EXPECT_NE(shown.text.find("TTFT P50"), std::string::npos);
  EXPECT_NE(shown.text.find("target TPOT 50 ms"), std::string::npos);
}

TEST_F(ServiceSimulation, OptionsChangeWhatIsPlayed) {
  const Json before = answer().json["services"][0];
  asked_.replicas = 1;
  asked_.requests.speed = 3;
  const Json loaded = answer().json["services"][0];
  EXPECT_GT(loaded["ttft_s"]["p99"], before["ttft_s"]["p99"]);
  asked_.replicas = 0;
  asked_.requests.speed = 1;
  asked_.requests.half = "second";
  EXPECT_NEAR(answer().json["services"][0]["requests"].get<double>(),
              before["requests"].get<double>() / 2, 1);
  asked_.requests.half = "";
  asked_.seed = 2;
  EXPECT_NE(answer().json["services"][0]["prompt_tokens"], before["prompt_tokens"]);
  asked_.seed = 1;
  asked_.kv_tokens = 20'000;
  EXPECT_LT(answer().json["services"][0]["hit_rate"], before["hit_rate"]);
}

TEST_F(ServiceSimulation, ACrashCostsTimeAndNoRequest) {
  const Json before = answer().json["services"][0];
  asked_.trouble.crashes = {"60 s", "90 s", "2 min"};
  const Json crashed = answer().json["services"][0];
  EXPECT_EQ(crashed["completed"], crashed["requests"]);
  EXPECT_GT(crashed["moved"], 0);
  EXPECT_GT(crashed["ttft_s"]["max"], before["ttft_s"]["max"]);
  asked_.trouble.cold_start = "5 s";
  EXPECT_LT(answer().json["services"][0]["ttft_s"]["max"], crashed["ttft_s"]["max"]);
  asked_.trouble.crashes = {"soon"};
  EXPECT_NE(refusal().find("--crash: "), std::string::npos);
}

TEST_F(ServiceSimulation, SeveralGatewaysAreNamedAndChangeWhatIsPlayed) {
  const Json one = answer().json;
  EXPECT_EQ(one["gateways"], 1);
  asked_.gateways = 3;
  const VerbAnswer three = answer();
  EXPECT_EQ(three.json["gateways"], 3);
  EXPECT_NE(three.text.find("by 3 gateways"), std::string::npos) << three.text;
  EXPECT_EQ(three.json["services"][0]["completed"], one["services"][0]["completed"]);
  EXPECT_NE(three.json["services"][0]["ttft_s"], one["services"][0]["ttft_s"]);
}

TEST_F(ServiceSimulation, AnAcceleratorHasItsPaceCacheAndPrice) {
  asked_.pace.file = "";
  asked_.pace.accelerators = "h100:3";
  asked_.pace.model = "llama-3.1-8b";
  const VerbAnswer shown = answer();
  EXPECT_EQ(shown.json["replicas"], 3) << "as many as the accelerators carry";
  EXPECT_GT(shown.json["kv_tokens"], 100'000);
  EXPECT_LT(shown.json["kv_tokens"], 1'000'000);
  const double step = shown.json["pace"]["step_s"];
  EXPECT_GT(step, 0.003) << "weights of 16 GB at 3.35 TB/s";
  EXPECT_LT(step, 0.03);
  EXPECT_GT(shown.json["services"][0]["usd_per_million_tokens"], 0);
  EXPECT_GT(shown.json["services"][0]["joules"], 0);
  asked_.pace.accelerators = "mi300x:3";
  EXPECT_GT(answer().json["kv_tokens"], shown.json["kv_tokens"]);
}

TEST_F(ServiceSimulation, EachPolicyOfTheRouterIsPlayed) {
  asked_.policies = "all";
  const VerbAnswer shown = answer();
  EXPECT_EQ(shown.json["services"].size(), 6U);
  std::map<std::string, double> found;
  for (const Json& run : shown.json["services"]) {
    found[run["policy"].get<std::string>()] = run["hit_rate"].get<double>();
    EXPECT_EQ(run["completed"], run["requests"]);
  }
  EXPECT_GT(found.at("cost"), found.at("random"));
  asked_.policies = "random,cost";
  EXPECT_EQ(answer().json["services"].size(), 2U);
  EXPECT_EQ(answer().json["services"][0], shown.json["services"][0]);
  asked_.policies = "rand";
  EXPECT_NE(refusal().find("--policy: \"rand\" is none of random"), std::string::npos);
}

TEST_F(ServiceSimulation, WritesTheRequestsAsEachOneCouldBeSent) {
  asked_.out = files_.path("out");
  const VerbAnswer shown = answer();
  const std::string written = files_.read("out/requests.jsonl");
  const auto lines = std::ranges::count(written, '\n');
  EXPECT_EQ(lines, shown.json["services"][0]["requests"].get<std::int64_t>());
  const std::string csv = files_.read("out/requests-cost.csv");
  EXPECT_EQ(std::ranges::count(csv, '\n'), lines + 1);
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "arrival_s,prompt_tokens,output_tokens,fate,ttft_s,end_s");
  EXPECT_EQ(Json::parse(files_.read("out/summary.json")), shown.json);
  // The file that was written is played alike.
  asked_.requests.file = files_.path("out/requests.jsonl") + ":mooncake";
  EXPECT_NEAR(answer().json["services"][0]["hit_rate"].get<double>(),
              shown.json["services"][0]["hit_rate"].get<double>(), 0.02);
}

TEST_F(ServiceSimulation, NotesWhatOfTheSpecIsNotPlayed) {
  const auto notes = [&] { return answer().json["notes"].dump(); };
  EXPECT_EQ(notes().find("not played"), std::string::npos) << notes();
  asked_.serve = files_.write("more.yaml", std::string(kSpec) +
                                               "quality: {small: chat-1b}\n"
                                               "tenants: [{name: a, tokens_per_s: 10}]\n");
  for (const char* left_out : {"quality is not", "tokens_per_s of tenants is not"}) {
    EXPECT_NE(notes().find(left_out), std::string::npos) << left_out;
  }
}

TEST_F(ServiceSimulation, ReplicasFollowTheRequestsAsTheSpecOrTheOptionSays) {
  asked_.requests.speed = 8;
  EXPECT_TRUE(answer().json["services"][0]["scaling"].is_null());
  asked_.serve =
      files_.write("scaled.yaml", std::string(kSpec) + "scaling: {max: 3, quantile: 0.9}\n");
  asked_.trouble.cold_start = "5 s";
  const VerbAnswer shown = answer();
  const Json& run = shown.json["services"][0];
  const Json& scaling = run["scaling"];
  EXPECT_EQ(scaling["max"], 3);
  EXPECT_EQ(scaling["quantile"], 0.9);
  EXPECT_GT(scaling["orders"], 0);
  EXPECT_LE(scaling["replicas_most"], 3);
  EXPECT_EQ(scaling["slo_attained"], run["slo_attained"]);
  EXPECT_NEAR(scaling["replica_hours"].get<double>(), run["replica_seconds"].get<double>() / 3600,
              1e-9);
  EXPECT_EQ(scaling["unscaled"]["replicas_most"], scaling["replicas_most"]);
  EXPECT_GE(scaling["unscaled"]["replica_hours"], scaling["replica_hours"]);
  EXPECT_NE(shown.text.find("scaled between 1 and 3 replicas"), std::string::npos) << shown.text;
  asked_.scale = "1..1";
  EXPECT_EQ(answer().json["services"][0]["scaling"]["replicas_most"], 1);
  asked_.scale = "none";
  EXPECT_TRUE(answer().json["services"][0]["scaling"].is_null());
}

TEST_F(ServiceSimulation, LimitsThatCannotBeAreRefused) {
  asked_.scale = "many";
  EXPECT_EQ(refusal(), "--scale: \"many\", expected MIN..MAX, such as 1..8, or none");
  asked_.scale = "3..2";
  EXPECT_NE(refusal().find("--scale: scaling: max is 2, expected 3 to"), std::string::npos);
  asked_.scale = "4..8";
  asked_.pace = {.accelerators = "h100:3", .model = "llama-3.1-8b"};
  EXPECT_EQ(refusal(),
            "--accelerators: they hold 3 replicas, and the service is to have at least 4");
}

TEST_F(ServiceSimulation, WithoutASpecReplicasHaveOneAcceleratorEach) {
  asked_.serve = "";
  asked_.replicas = 0;
  asked_.pace = {.accelerators = "h100:3", .model = "llama-3.1-8b"};
  const VerbAnswer shown = answer();
  EXPECT_EQ(shown.json["replicas"], 3);
  EXPECT_EQ(shown.json["services"][0]["name"], "service");
  EXPECT_GT(shown.json["services"][0]["completed"], 0);
}

TEST_F(ServiceSimulation, RefusalsNameTheOption) {
  const ServiceSimulationOptions fine = asked_;
  asked_.requests.file = "";
  EXPECT_EQ(refusal(), "--requests: required of a service");
  asked_ = fine;
  asked_.pace.file = "";
  EXPECT_EQ(refusal(), "expected either --pace FILE or --accelerators TYPE[:N]");
  asked_.pace.accelerators = "h100:2";
  EXPECT_EQ(refusal(), "--model: required with --accelerators");
  asked_.pace.model = "llama-3.1-405b";
  EXPECT_NE(refusal().find("the model does not fit"), std::string::npos);
  asked_ = fine;
  asked_.pace.model = "x";
  EXPECT_EQ(refusal(), "--model: needs --accelerators");
  asked_ = fine;
  asked_.trouble.cold_start = "110 days";
  EXPECT_EQ(refusal(), "--cold-start: expected at most 90 days");
  asked_ = fine;
  asked_.trouble.crashes = {"110 days"};
  EXPECT_EQ(refusal(), "--crash: expected at most 90 days");
  asked_ = fine;
  asked_.gateways = 0;
  EXPECT_EQ(refusal(), "--gateways: 0: expected 1 to 64");
  asked_ = fine;
  asked_.requests.half = "third";
  EXPECT_EQ(refusal(), "--half: \"third\" is none of first, second");
  asked_ = fine;
  asked_.requests.speed = 0;
  EXPECT_EQ(refusal(), "--speed: 0: expected more than 0, at most 1e6");
  asked_ = fine;
  asked_.requests.file += ":csv";
  EXPECT_NE(refusal().find("--requests: \"csv\" is none of azure"), std::string::npos);
  asked_ = fine;
  asked_.pace.file = files_.write("bad.csv", "prefill_tokens,seconds\n1,2\n");
  EXPECT_NE(refusal().find("bad.csv:1:1: missing column \"prefill_pairs\""), std::string::npos);
}

TEST_F(ServiceSimulation, RolesOfBothDutiesArePlayed) {
  const auto spec = [&](const std::string& rate) {
    std::string text(kSpec);
    const std::size_t roles = text.find("roles:");
    text.replace(roles, text.find('\n', roles) - roles,
                 "roles: [{name: prefill, accelerators: 1}, {name: decode, replicas: 2, "
                 "accelerators: 1}]\ntransfer: {token: 128 KiB, rate: " +
                     rate + "}");
    text.replace(text.find("tpot_p99: 50 ms"), 15, "tpot_p99: 8 ms");
    return files_.write("apart.yaml", text);
  };
  asked_.serve = spec("25 GB/s");
  const VerbAnswer shown = answer();
  EXPECT_EQ(shown.json["replicas"], 3);
  const Json& run = shown.json["services"][0];
  EXPECT_EQ(run["completed"], run["requests"]);
  EXPECT_GT(run["apart"], 0);
  EXPECT_NE(shown.text.find("1 replica computed prompts alone: "), std::string::npos);
  asked_.serve = spec("1 MB/s");
  EXPECT_EQ(answer().json["services"][0]["apart"], 0) << "minutes for a prompt";
  asked_.replicas = 2;
  EXPECT_EQ(refusal(), "--replicas: the numbers of replicas are those of the spec's roles");
}

TEST_F(ServiceSimulation, ALogOfStepsIsFittedTo) {
  std::string log = "time,prefill_tokens,prefill_pairs,decode_sequences,decode_context,seconds\n";
  for (int i = 0; i < 50; ++i) {
    const int prompt = i % 3 == 0 ? 100 + i : 0;
    const int sequences = i % 7;
    const double seconds = 0.004 + prompt * 1e-4 + sequences * 1e-3;
    log += fmt::format("1,{},0,{},0,{}\n", prompt, sequences, seconds);
  }
  asked_.pace.file = files_.write("steps.csv", log);
  const Json shown = answer().json;
  EXPECT_NEAR(shown["pace"]["step_s"].get<double>(), 0.004, 1e-6);
  EXPECT_NEAR(shown["pace"]["prompt_token_s"].get<double>(), 1e-4, 1e-8);
  EXPECT_NEAR(shown["pace"]["sequence_s"].get<double>(), 1e-3, 1e-7);
}

}  // namespace
}  // namespace orrery

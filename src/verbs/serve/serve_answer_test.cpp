// verbs/serve/serve_answer_test.cpp - plans of inference services for people and programs.
#include "verbs/serve/serve_answer.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "verbs/serve/serving_json.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

constexpr double kGibibyte = 1u << 30;

/// Asks for llama-3.1-8b with prompts of 1,000 tokens and answers of 100 on two machines.
ServeRequest request() {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  ServeRequest made;
  made.model = std::make_unique<Model>((*kModels->require("llama-3.1-8b"))->model);
  made.question.model = made.model.get();
  made.question.input = 1000;
  made.question.output = 100;
  for (const char* label : {"here", "there"}) {
    made.question.machines.push_back({.label = label,
                                      .accelerator = *builtin_facts().require<Accelerator>("h100"),
                                      .domain = 8});
  }
  return made;
}

/// Three instances of two devices that serve 30 requests a second of at most 60.
ServingOffer offer() {
  ServingOffer made{.plan = {.tp = 2, .replicas = 3}, .concurrency = 16, .requests_max = 60};
  made.prediction = {.tokens_total = TokensPerSecond(33000),
                     .output_tokens = TokensPerSecond(3000),
                     .requests = 30,
                     .ttft = Seconds(0.2),
                     .tpot = Seconds(0.01),
                     .e2e = Seconds(1.2),
                     .batch = 8,
                     .memory = {.weights = 8 * kGibibyte,
                                .activations = 2 * kGibibyte,
                                .sequence = kGibibyte / 4,
                                .available = 70 * kGibibyte,
                                .sequences = 240},
                     .fits = true,
                     .breakdown = {.matmul = 0.006, .host = 0.002}};
  made.bounds = {ServingBound::kMemory, ServingBound::kRate};
  made.throughput = {.low = 0.5, .high = 1.5};
  made.latency = {.low = 0.8, .high = 1.2};
  made.first_token = {.low = 0.5, .high = 2};
  return made;
}

ServingAnswer answer_of(const ServingOffer& best) {
  ServingAnswer answer;
  answer.plans = {best};
  answer.by_machine = {best};
  answer.layouts = 1234;
  return answer;
}

TEST(ServeAnswer, TheBestServiceIsExplained) {
  EXPECT_EQ(
      serving_answer_text(answer_of(offer()), request()),
      "llama-3.1-8b, requests of 1,000 + 100 tokens\n"
      "1,234 layouts.\n\n"
      "#  machine  numbers  layout  x  batch    TTFT   TPOT  tokens/s  $/M tokens  tokens/s/W  "
      "tokens/s/rack\n"
      "1  here     bf16     tp=2    3      8  200 ms  10 ms     3,000           ?           ?  "
      "            ?\n"
      "\nTime per token of plan 1, by term\n"
      "term    time    share  meaning\n"
      "matmul  6 ms   75.0 %  matrix products outside the experts, prompts included\n"
      "host    2 ms   25.0 %  scheduling, sampling and answering on the host\n"
      "token   8 ms  100.0 %  one token of one sequence, with its share of the prompt\n"
      "\n6 accelerators, 3 x 2: 30 requests/s of at most 60, 3,000 output tokens/s (1,500 to "
      "4,500).\n"
      "TTFT 200 ms (100 ms to 400 ms), TPOT 10 ms (8 ms to 12 ms), whole request 1.2 s (960 ms to "
      "1.44 s).\n"
      "8 running sequences per instance, at most 16 in flight; limited by: memory for the KV "
      "cache, the request rate.\n"
      "Memory per device, GiB: weights 8.0, activations 2.0, KV cache 2.0 (0.250 per sequence); "
      "total 12.0 of 70.0.\n"
      "\nAssumptions\n");
}

TEST(ServeAnswer, AnOfferedRateIsReachedOrNot) {
  ServeRequest asked = request();
  asked.question.rate = 30;
  const Json easy = serving_answer_json(answer_of(offer()), asked)["plans"][0];
  EXPECT_EQ(easy["requests_s"], 30.0);
  EXPECT_EQ(easy["requests_s_high"], 30.0) << "no more than what is offered";
  EXPECT_EQ(easy["requests_s_low"], 30.0) << "half of 60 is enough";
  ServingOffer scarce = offer();
  scarce.requests_max = 40;
  const Json hard = serving_answer_json(answer_of(scarce), asked)["plans"][0];
  EXPECT_EQ(hard["requests_s_low"], 20.0);
  EXPECT_NE(serving_answer_text(answer_of(scarce), asked)
                .find("requests of 1,000 + 100 tokens, 30 per second\n"),
            std::string::npos);
}

TEST(ServeAnswer, FiguresForProgramsAreInBaseUnits) {
  ServingOffer priced = offer();
  priced.quote.price = DollarsPerSecond(18.0 / 3600);
  priced.quote.dollars_per_million = 1.5;
  priced.quote.power = Watts(4200);
  const Json json = serving_answer_json(answer_of(priced), request())["plans"][0];
  EXPECT_EQ(json["machine"], "here");
  EXPECT_EQ(json["accelerators"], 6);
  EXPECT_EQ(json["replica_accelerators"], 2);
  EXPECT_EQ(json["replicas"], 3);
  EXPECT_EQ(json["ttft_s"], 0.2);
  EXPECT_EQ(json["ttft_s_high"], 0.4);
  EXPECT_EQ(json["memory_bytes"], 12 * kGibibyte);
  EXPECT_EQ(json["memory"]["kv"], 2 * kGibibyte);
  EXPECT_EQ(json["memory"]["kv_sequence"], kGibibyte / 4);
  EXPECT_DOUBLE_EQ(json["usd_per_hour"].get<double>(), 18);
  EXPECT_EQ(json["usd_per_million_output_tokens"], 1.5);
  EXPECT_TRUE(json["usd_per_million_tokens"].is_null());
  EXPECT_EQ(json["power_w"], 4200.0);
  EXPECT_EQ(json["limits"], Json({"memory", "rate"}));
  EXPECT_EQ(json["token_s"], 0.008);
  EXPECT_EQ(json["breakdown"]["host"], 0.002);
}

TEST(ServeAnswer, OtherObjectivesAndMachinesFollow) {
  ServeRequest asked = request();
  asked.assumptions = {"asked"};
  ServingAnswer answer = answer_of(offer());
  ServingOffer second = offer();
  second.machine = 1;
  answer.by_machine.push_back(second);
  answer.by_objective[static_cast<std::size_t>(ServingObjective::kCost)] = offer();
  answer.by_objective[static_cast<std::size_t>(ServingObjective::kEnergy)] = second;
  answer.assumptions = {"planned"};
  answer.refused = {{.machine = 1, .why = {.message = "too slow"}}};
  const std::string text = serving_answer_text(answer, asked);
  EXPECT_NE(text.find("\nBest plan of each machine\n"), std::string::npos);
  EXPECT_TRUE(
      text.ends_with("Best by energy: 3 x tp=2 on there, bf16.\n"
                     "\nAssumptions\n- asked\n- planned\n- no plan: too slow\n"))
      << text;
  const Json json = serving_answer_json(answer, asked);
  EXPECT_EQ(json["by_accelerator"].size(), 2u);
  EXPECT_EQ(json["best_by"]["energy"]["machine"], "there");
  EXPECT_TRUE(json["best_by"]["rack"].is_null());
  EXPECT_EQ(json["assumptions"], Json({"asked", "planned"}));
  EXPECT_EQ(json["refused"], Json::parse(R"([{"machine": "there", "reason": "too slow"}])"));
  EXPECT_EQ(json["layouts"], 1234);
}

TEST(ServeAnswer, EachTermOfATokenIsNamedAndMeansSomething) {
  const Json json = serving_answer_json(answer_of(offer()), request());
  EXPECT_EQ(json["terms"].size(), json["plans"][0]["breakdown"].size());
  for (const auto& [name, meaning] : json["terms"].items()) {
    EXPECT_TRUE(json["plans"][0]["breakdown"].contains(name)) << name;
    EXPECT_FALSE(meaning.get<std::string>().empty()) << name;
  }
}

TEST(ServeAnswer, TermsForProgramsSumToTheToken) {
  const StepTime time{
      .matmul = 1, .experts = 2, .attention = 4, .elementwise = 8, .collective = 16, .host = 32};
  double sum = 0;
  const Json json = serving_breakdown_json(time);
  for (const auto& [name, seconds] : json.items()) sum += seconds.get<double>();
  EXPECT_EQ(sum, time.total());
}

}  // namespace
}  // namespace orrery

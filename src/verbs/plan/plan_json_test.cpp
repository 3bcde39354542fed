// verbs/plan/plan_json_test.cpp - plans for programs: names, units, and nulls for the unknown.
#include "verbs/plan/plan_json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/rng.hpp"
#include "verbs/plan/plan_answers_test.hpp"

namespace orrery {
namespace {

TEST(PlanJson, TermsOfABreakdownSumToTheStep) {
  Rng rng(3);
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    Breakdown terms;
    for (double& seconds : terms.seconds) seconds = rng.uniform();
    const Json json = breakdown_json(terms);
    double sum = 0;
    for (const auto& [name, seconds] : json.items()) sum += seconds.get<double>();
    EXPECT_EQ(json.size(), kTerms);
    EXPECT_NEAR(sum, terms.total(), 1e-12);
  }
}

TEST(PlanJson, WhatIsNotPublishedIsNull) {
  const PlanRequest request = request_on({"lab:64"});
  const Json json = offer_json(offer_with({{Term::kMatmul, 2}}), request.question.machines[0], {});
  for (const char* key : {"cost_usd", "energy_j", "j_per_flop", "power_w", "tokens_per_s_per_watt",
                          "goodput", "run"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_TRUE(json[key].is_null()) << key;
  }
}

TEST(PlanJson, FiguresAreInBaseUnits) {
  const PlanRequest request = request_on({"lab:64"});
  PlanOffer offer = offer_with({{Term::kMatmul, 2}});
  price(offer);
  lengthen(offer);
  const Json json = offer_json(offer, request.question.machines[0],
                               {.unit = SampleUnit::kTokens, .length = 4.2e9, .assumption = ""});
  EXPECT_EQ(json["machine"], "lab:64");
  EXPECT_EQ(json["accelerator"], "nvidia-h100-sxm5-80g");
  EXPECT_EQ(json["accelerators"], 64);
  EXPECT_EQ(json["dp"], 64);
  EXPECT_EQ(json["step_s"], 2.0);
  EXPECT_EQ(json["step_s_low"], 1.0);
  EXPECT_EQ(json["step_s_high"], 4.0);
  EXPECT_EQ(json["memory_bytes"], 12.0 * (1u << 30));
  EXPECT_EQ(json["memory"]["weights"], 10.0 * (1u << 30));
  EXPECT_EQ(json["cost_usd"], 3.0);
  EXPECT_EQ(json["energy_j"], 7200.0);
  EXPECT_EQ(json["j_per_flop"], 2e-12);
  EXPECT_EQ(json["tokens_per_s"], 4096.0);
  EXPECT_EQ(json["run"]["tokens"], 4.2e9);
  EXPECT_EQ(json["run"]["steps"], 1000.0);
  EXPECT_EQ(json["run"]["time_s"], 7200.0);
  EXPECT_EQ(json["run"]["cost_usd"], 3000.0);
  EXPECT_EQ(json["run"]["energy_kwh"], 2000.0);
  EXPECT_EQ(json["run"]["co2_kg"], 5000.0);
  EXPECT_EQ(json["goodput"]["effective"], 0.9);
  EXPECT_EQ(json["goodput"]["checkpoint_interval_s"], 120.0);
}

TEST(PlanJson, RanksThatShareAnAcceleratorAreCountedOnce) {
  PlanRequest request = request_on({"trn:32"});
  request.question.machines[0].machine.ranks_per_accelerator = 2;
  const Json json = offer_json(offer_with({{Term::kMatmul, 2}}), request.question.machines[0], {});
  EXPECT_EQ(json["accelerators"], 32);
}

TEST(PlanJson, ImagesAreCountedAsImages) {
  const PlanRequest request = request_on({"lab:64"});
  PlanOffer offer = offer_with({{Term::kMatmul, 2}});
  lengthen(offer);
  const Json json = offer_json(offer, request.question.machines[0],
                               {.unit = SampleUnit::kImages, .length = 1e6, .assumption = ""});
  EXPECT_EQ(json["images_per_s"], 4096.0);
  EXPECT_FALSE(json.contains("tokens_per_s"));
  EXPECT_EQ(json["run"]["images"], 1e6);
}

TEST(PlanJson, AFigureThatIsNoNumberIsNull) {
  const PlanRequest request = request_on({"lab:64"});
  PlanOffer offer = offer_with({{Term::kMatmul, 2}});
  offer.seconds_high = std::numeric_limits<double>::infinity();
  offer.mfu = std::nan("");
  offer.quote.step_cost = Dollars(std::nan(""));
  const Json json = offer_json(offer, request.question.machines[0], {});
  EXPECT_TRUE(json["step_s_high"].is_null());
  EXPECT_TRUE(json["mfu"].is_null());
  EXPECT_TRUE(json["cost_usd"].is_null());
  EXPECT_EQ(json["step_s_low"], 1.0);
}

TEST(PlanJson, AnAnswerHasItsPlansItsCountsAndWhatWasRefused) {
  PlanRequest request = request_on({"a:64", "b:64"});
  request.assumptions = {"from the options"};
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}}), offer_with({{Term::kMatmul, 3}})};
  answer.pareto = {answer.plans[0]};
  answer.assumptions = {"from the planner"};
  answer.refused = {{.machine = 1, .why = {.message = "too small"}}};
  answer.counters = {
      .invalid = 9, .enumerated = 6, .out_of_memory = 1, .pruned = 2, .evaluated = 3};
  const Json json = answer_json(answer, request);
  ASSERT_EQ(json["plans"].size(), 2u);
  EXPECT_EQ(json["plans"][1]["step_s"], 3.0);
  EXPECT_EQ(json["pareto"].size(), 1u);
  EXPECT_EQ(json["assumptions"], Json({"from the options", "from the planner"}));
  EXPECT_EQ(json["refused"], Json::parse(R"([{"machine": "b:64", "reason": "too small"}])"));
  EXPECT_EQ(json["counters"], Json::parse(R"({"invalid": 9, "enumerated": 6, "out_of_memory": 1,
                                              "pruned": 2, "evaluated": 3})"));
}

TEST(PlanJson, ASensitivityHasBothChangesAndTheirLayouts) {
  const Sensitivity peak{.figure = HardwareFigure::kPeak,
                         .up = {.step = -0.5, .run = 0.25, .plan = {.tp = 2, .dp = 32}},
                         .down = {.step = 0.5, .plan = {.dp = 64}}};
  const Json json = sensitivity_json({peak});
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["figure"], "peak");
  EXPECT_EQ(json[0]["plus_1_percent"]["step"], -0.5);
  EXPECT_EQ(json[0]["plus_1_percent"]["run"], 0.25);
  EXPECT_TRUE(json[0]["plus_1_percent"]["cost"].is_null());
  EXPECT_EQ(json[0]["plus_1_percent"]["layout"], "tp=2,pp=1,dp=32,micro_batch=1");
  EXPECT_EQ(json[0]["minus_1_percent"]["step"], 0.5);
  EXPECT_TRUE(json[0]["minus_1_percent"]["run"].is_null());
}

}  // namespace
}  // namespace orrery

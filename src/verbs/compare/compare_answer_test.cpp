// verbs/compare/compare_answer_test.cpp - machines beside each other for one workload.
#include "verbs/compare/compare_answer.hpp"

#include <gtest/gtest.h>

#include "verbs/plan/plan_answers_test.hpp"

namespace orrery {
namespace {

Contender contender(const std::string& name, Result<PlanAnswer> answer) {
  return {name, request_on({name}), std::move(answer)};
}

PlanAnswer answer_of(const PlanOffer& offer) {
  PlanAnswer answer;
  answer.plans = {offer};
  return answer;
}

TEST(CompareAnswer, EachContenderHasARowAndItsDifferenceFromTheFirst) {
  PlanOffer priced = offer_with({{Term::kMatmul, 2}});
  price(priced);
  lengthen(priced);
  std::vector<Contender> contenders;
  contenders.push_back(contender("a:64", answer_of(priced)));
  contenders.push_back(contender("b:64", answer_of(offer_with({{Term::kMatmul, 3}}))));
  contenders[0].answer->run = {.unit = SampleUnit::kTokens, .length = 4.2e9, .assumption = ""};
  EXPECT_EQ(contenders_answer(contenders).text,
            "llama-3.1-8b, 512 sequences of 8,192 tokens, bf16, a run of 4.2B tokens\n\n"
            "of    machine  layout                         step  MFU (16-bit)  tokens/s  run  cost "
            " energy  tokens/s/W  pJ/FLOP  goodput\n"
            "a:64  a:64     tp=1,pp=1,dp=64,micro_batch=1   2 s        40.0 %     4,096  2 h   $3k "
            "  2 MWh         1.5        2   90.0 %\n"
            "b:64  b:64     tp=1,pp=1,dp=64,micro_batch=1   3 s        40.0 %     4,096    -     ? "
            "      ?           ?        ?        ?\n"
            "\nb:64 against a:64: 1 s longer: matmul +1 s\n");
}

TEST(CompareAnswer, AContenderWithoutAPlanIsNoRowButAReason) {
  std::vector<Contender> contenders;
  contenders.push_back(contender("tiny:1", infeasible("nothing fits")));
  contenders.push_back(contender("b:64", answer_of(offer_with({{Term::kMatmul, 3}}))));
  const VerbAnswer answer = contenders_answer(contenders);
  EXPECT_NE(answer.text.find("\ntiny:1 has no plan: nothing fits\n"), std::string::npos);
  EXPECT_EQ(answer.text.find("against"), std::string::npos) << "b:64 is the first with a plan";
  ASSERT_EQ(answer.json["rows"].size(), 2u);
  EXPECT_EQ(answer.json["rows"][0], Json::parse(R"({"name": "tiny:1", "error": "nothing fits"})"));
  EXPECT_EQ(answer.json["rows"][1]["name"], "b:64");
  EXPECT_EQ(answer.json["rows"][1]["plan"]["step_s"], 3.0);
  EXPECT_FALSE(answer.json["rows"][1].contains("error"));
}

TEST(CompareAnswer, TheAssumptionsOfARowAreThoseOfItsQuestionThenOfItsPlan) {
  std::vector<Contender> contenders;
  contenders.push_back(contender("a:64", answer_of(offer_with({{Term::kMatmul, 2}}))));
  contenders[0].request.assumptions = {"asked"};
  contenders[0].answer->assumptions = {"planned"};
  EXPECT_EQ(contenders_answer(contenders).json["rows"][0]["assumptions"],
            Json({"asked", "planned"}));
}

TEST(CompareAnswer, OneMachineIsNoComparison) {
  CompareCall call;
  EXPECT_EQ(report_comparison({}, call).error().message, "expected --model or --benchmark");
  call.options.model = "llama-3.1-8b";
  const std::string expected =
      "expected two or more machines: --accelerators TYPE:N,TYPE:N or --fleet FILE";
  EXPECT_EQ(report_comparison({}, call).error().message, expected);
  call.options.machines.accelerators = "h100:8";
  EXPECT_EQ(report_comparison({}, call).error().message, expected);
}

TEST(CompareAnswer, ContendersOfDifferentSizesTrainTheSameBatch) {
  CompareCall call;
  call.options.model = "llama-3.1-8b";
  call.options.machines.accelerators = "h100:8,h100:16";
  call.options.layout.fixed = "tp=1,pp=1,cp=1,micro_batch=1,zero=1";
  const Result<VerbAnswer> answer = report_comparison({}, call);
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& rows = answer->json["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["plan"]["dp"], 8);
  EXPECT_EQ(rows[1]["plan"]["dp"], 16);
  // Tokens of a step: the rate times the step time.
  const auto tokens = [](const Json& row) {
    return row["plan"]["tokens_per_s"].get<double>() * row["plan"]["step_s"].get<double>();
  };
  EXPECT_NEAR(tokens(rows[0]), 512.0 * 8192, 1);
  EXPECT_NEAR(tokens(rows[1]), 512.0 * 8192, 1);
}

TEST(CompareAnswer, WhereNoMachineHasAPlanTheFirstReasonIsTheError) {
  CompareCall call;
  call.options.model = "llama-3.1-8b";
  call.options.machines.accelerators = "h100:8,h100:16";
  call.options.layout.fixed = "tp=8,pp=8";
  const Result<VerbAnswer> answer = report_comparison({}, call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "h100:8: no layout obeys the rules: tp 8 x pp 8 does not divide 8 ranks");
}

}  // namespace
}  // namespace orrery

// verbs/plan/plan_text_test.cpp - plans for people: units, tables, and what is unknown.
#include "verbs/plan/plan_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/numbers/rng.hpp"
#include "verbs/plan/plan_answers_test.hpp"

namespace orrery {
namespace {

TEST(PlanText, ADurationIsInTheUnitThatKeepsItsDigitsFew) {
  EXPECT_EQ(duration_text(0), "0 us");
  EXPECT_EQ(duration_text(1.5e-6), "1.5 us");
  EXPECT_EQ(duration_text(0.25), "250 ms");
  EXPECT_EQ(duration_text(1), "1 s");
  EXPECT_EQ(duration_text(599), "599 s");
  EXPECT_EQ(duration_text(600), "10 min");
  EXPECT_EQ(duration_text(3600), "1 h");
  EXPECT_EQ(duration_text(172'799), "48 h");
  EXPECT_EQ(duration_text(172'800), "2 days");
  EXPECT_EQ(duration_text(86400 * 2.44), "2.44 days");
  EXPECT_EQ(duration_text(86400 * 999.4), "999 days");
  EXPECT_EQ(duration_text(86400 * 999.6), "1,000 days");
  EXPECT_EQ(duration_text(86400 * 1234.56), "1,235 days");
}

TEST(PlanText, ADurationThatRoundsUpToAWholeUnitIsInThatUnit) {
  EXPECT_EQ(duration_text(0.9994), "999 ms");
  EXPECT_EQ(duration_text(0.9996), "1 s");
  EXPECT_EQ(duration_text(0.9994e-3), "999 us");
  EXPECT_EQ(duration_text(0.9997e-3), "1 ms");
}

// Whatever the length: read back with its unit, the text is within half of its last digit.
TEST(PlanText, ADurationReadsBackAsWhatItWas) {
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const double seconds = std::pow(10.0, -6 + 13 * rng.uniform());
    const std::string text = duration_text(seconds);
    SCOPED_TRACE(fmt::format("draw {} of seed 1: {} s as \"{}\"", i, seconds, text));
    EXPECT_EQ(text.find('e'), std::string::npos);
    const std::size_t blank = text.find(' ');
    ASSERT_NE(blank, std::string::npos);
    std::string number = text.substr(0, blank);
    std::erase(number, ',');
    const std::string unit = text.substr(blank + 1);
    const double factor = unit == "us"    ? 1e-6
                          : unit == "ms"  ? 1e-3
                          : unit == "s"   ? 1
                          : unit == "min" ? 60
                          : unit == "h"   ? 3600
                                          : 86400;
    if (factor == 86400) EXPECT_EQ(unit, "days");
    // Days are whole.
    const double error_max = factor < 86400 ? 0.005001 * seconds : 0.5501 * factor;
    EXPECT_NEAR(std::stod(number) * factor, seconds, error_max);
  }
}

TEST(PlanText, ARateHasThreeDigitsOrIsWhole) {
  EXPECT_EQ(rate_number(0.012345), "0.0123");
  EXPECT_EQ(rate_number(99.94), "99.9");
  EXPECT_EQ(rate_number(100.4), "100");
  EXPECT_EQ(rate_number(1234567.8), "1,234,568");
}

TEST(PlanText, EveryTermHasAMeaningOfItsOwn) {
  std::set<std::string_view> meanings;
  for (std::size_t i = 0; i < kTerms; ++i) meanings.insert(meaning_of(static_cast<Term>(i)));
  EXPECT_EQ(meanings.size(), kTerms);
  EXPECT_FALSE(meanings.contains(""));
}

TEST(PlanText, AJobIsNamedWithItsBatchInItsOwnUnit) {
  PlanRequest request = request_on({"a"});
  EXPECT_EQ(job_text(request.question), "llama-3.1-8b, 512 sequences of 8,192 tokens, bf16");
  request.question.job.precision.format = NumberFormat::kFp8;
  request.question.job.global_batch = 4096;
  EXPECT_EQ(job_text(request.question), "llama-3.1-8b, 4,096 sequences of 8,192 tokens, fp8");
}

TEST(PlanText, ALossNamesTheTermsThatMakeItTheLargestFirst) {
  const PlanOffer winner = offer_with({{Term::kMatmul, 10}, {Term::kOptimizer, 1}});
  const PlanOffer loser = offer_with({{Term::kMatmul, 9.8},
                                      {Term::kOptimizer, 1},
                                      {Term::kPipelineBubble, 0.9},
                                      {Term::kTensorParallel, 0.6}});
  EXPECT_EQ(loss_text(winner, loser),
            "1.3 s longer: pipeline_bubble +900 ms, tensor_parallel +600 ms, matmul -200 ms");
  EXPECT_EQ(loss_text(loser, winner),
            "1.3 s shorter: pipeline_bubble -900 ms, tensor_parallel -600 ms, matmul +200 ms");
}

TEST(PlanText, ALossNamesNoMoreThanThreeTermsAndNoneThatHardlyDiffers) {
  const PlanOffer winner = offer_with({{Term::kMatmul, 100}});
  const PlanOffer near = offer_with({{Term::kMatmul, 100.05}});
  EXPECT_EQ(loss_text(winner, near), "50 ms longer, no term differs by more than 0.1 %");
  const PlanOffer far = offer_with({{Term::kMatmul, 104},
                                    {Term::kAttention, 3},
                                    {Term::kOptimizer, 2},
                                    {Term::kInput, 1},
                                    {Term::kLaunch, 0.01}});
  EXPECT_EQ(loss_text(winner, far), "10 s longer: matmul +4 s, attention +3 s, optimizer +2 s");
}

TEST(PlanText, TheTablesOfOnePlanWithoutPrice) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 1.5}, {Term::kDataParallel, 0.5}})};
  answer.counters = {.enumerated = 1200, .out_of_memory = 1000, .pruned = 150, .evaluated = 50};
  EXPECT_EQ(answer_text(answer, request),
            "llama-3.1-8b, 512 sequences of 8,192 tokens, bf16\n"
            "1,200 layouts: 1,000 do not fit in memory, 150 cannot be among the best, 50 "
            "evaluated.\n\n"
            "#  machine  layout                         step  80 % interval  MFU (16-bit)    memory"
            "  cost per step  energy\n"
            "1  lab:64   tp=1,pp=1,dp=64,micro_batch=1   2 s     1 s to 4 s        40.0 %  12.0 GiB"
            "              ?       ?\n"
            "\nStep time of plan 1, by term\n"
            "term             time    share  meaning\n"
            "matmul          1.5 s   75.0 %  matrix products of the layers, forward and backward\n"
            "data_parallel  500 ms   25.0 %  gradients reduced between replicas, not hidden\n"
            "step              2 s  100.0 %\n"
            "\nMemory of the fullest rank, GiB: weights 10.0, gradients 0.0, optimizer 0.0, "
            "activations 0.0, transient 0.0, gathered 0.0, runtime 2.0; total 12.0.\n"
            "MFU 40.0 % of the dense 16-bit peak. 4,096 tokens/s.\n"
            "1,000 tokens: 244 ms, without failures.\n");
}

TEST(PlanText, ARunHasItsPriceItsEnergyAndItsGoodput) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  price(answer.plans[0]);
  lengthen(answer.plans[0]);
  answer.plans[0].format_mfu = 0.2;
  answer.run = {.unit = SampleUnit::kTokens, .length = 4.2e9, .assumption = ""};
  const std::string text = answer_text(answer, request);
  EXPECT_NE(text.find("MFU 40.0 % of the dense 16-bit peak, 20.0 % of the bf16 peak. 4,096 "
                      "tokens/s, 1.5 tokens/s per watt, 2 pJ/FLOP, power 3.6 kW.\n"
                      "A run of 4.2B tokens: 1,000 steps, 2 h, $3k, 2,000 kWh at the meter, 5 t "
                      "of CO2.\n"
                      "Goodput 90.0 % with a checkpoint every 120 s: lost work 2.0 %, restarts "
                      "2.0 %, detection 1.0 %, checkpoints 5.0 %.\n"),
            std::string::npos)
      << text;
}

TEST(PlanText, ThePriceOfAThousandTokensFollowsFromThatOfAStep) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  price(answer.plans[0]);
  // A step of 2 s at 4,096 tokens/s is 8,192 tokens for $3 and 2 Wh.
  EXPECT_NE(answer_text(answer, request)
                .find("1,000 tokens: 244 ms, $0.3662, 0.2441 Wh, without failures.\n"),
            std::string::npos)
      << answer_text(answer, request);
}

TEST(PlanText, WhatOtherPlansAndMachinesCameToFollowsTheBest) {
  PlanRequest request = request_on({"a:64", "b:64", "c:64"});
  request.assumptions = {"--seq 8192"};
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}}), offer_with({{Term::kMatmul, 3}}, 1)};
  answer.pareto = answer.plans;
  answer.refused = {{.machine = 2, .why = {.message = "c:64: nothing fits"}}};
  answer.assumptions = {std::string(60, 'x') + " " + std::string(60, 'y')};
  const std::string text = answer_text(answer, request);
  EXPECT_NE(text.find("Step of plan 2 against plan 1: 1 s longer: matmul +1 s.\n"
                      "\nBest trade-offs between time, cost and energy\n"
                      "machine  layout                         step  cost per step  energy\n"
                      "a:64     tp=1,pp=1,dp=64,micro_batch=1   2 s              ?       ?\n"
                      "b:64     tp=1,pp=1,dp=64,micro_batch=1   3 s              ?       ?\n"
                      "\nAssumptions\n"
                      "- --seq 8192\n"
                      "- " +
                      std::string(60, 'x') + "\n  " + std::string(60, 'y') +
                      "\n"
                      "- no plan: c:64: nothing fits\n"),
            std::string::npos)
      << text;
}

TEST(PlanText, ALabelCannotSteerATerminal) {
  const PlanRequest request = request_on({"a\x1b[31m"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  EXPECT_EQ(answer_text(answer, request).find('\x1b'), std::string::npos);
}

TEST(PlanText, ASensitivityHasASignAndUnknownFiguresAreQuestionMarks) {
  const Sensitivity peak{.figure = HardwareFigure::kPeak,
                         .up = {.step = -0.0061, .cost = -0.006, .energy = 0.0001},
                         .down = {.step = 0.0062, .cost = std::nullopt, .energy = std::nullopt}};
  EXPECT_EQ(sensitivity_text({peak}),
            "\nEffect of a 1 % change of each hardware figure on the best plan\n"
            "+1 % of      step  cost of the run    energy  -1 %: step  cost of the run  energy\n"
            "peak     -0.610 %         -0.600 %  +0.010 %    +0.620 %                ?       ?\n");
}

}  // namespace
}  // namespace orrery

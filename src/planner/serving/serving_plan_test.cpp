#include "planner/serving/serving_plan.hpp"

#include <fmt/ranges.h>

#include <cmath>

#include "planner/serving/serving_test.hpp"

namespace orrery {
namespace {

ServingAnswer answer_to(const ServingQuestion& question) {
  Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? *std::move(answer) : ServingAnswer{};
}

std::string refusal_of(const ServingQuestion& question) {
  const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  EXPECT_FALSE(answer);
  if (answer) return "";
  EXPECT_EQ(answer.error().kind, ErrorKind::kInfeasible);
  return answer.error().message;
}

TEST(ServingPlanner, AnOfferIsWhatEstimateSaysOfTheSameRow) {
  ServingQuestion question = serving_question("qwen3-30b-a3b", {serving_on("h100", 8)});
  for (const std::optional<double> rate : {std::optional<double>(), std::optional<double>(5)}) {
    question.rate = rate;
    for (const ServingOffer& offer : answer_to(question).plans) {
      const auto estimate = estimate_serving(run_of(question, offer), builtin_constants());
      ASSERT_TRUE(estimate);
      const double instances = offer.plan.replicas;
      EXPECT_EQ(print_layout(estimate->job.plan), print_layout(offer.plan));
      EXPECT_DOUBLE_EQ(estimate->prediction.requests * instances, offer.prediction.requests);
      EXPECT_EQ(estimate->prediction.ttft, offer.prediction.ttft);
      EXPECT_EQ(estimate->prediction.tpot, offer.prediction.tpot);
      EXPECT_EQ(estimate->prediction.batch, offer.prediction.batch);
      EXPECT_LE(offer.throughput.low, 1);
      EXPECT_GE(offer.throughput.high, 1);
    }
  }
}

TEST(ServingPlanner, PlansAreRankedByTheObjective) {
  ServingQuestion question =
      serving_question("llama-3.1-70b", {serving_on("h100", 8), serving_on("b200", 8)});
  for (const auto& entry : enum_words(ServingObjective{})) {
    question.objective = entry.value;
    question.best = 1000;
    const ServingAnswer answer = answer_to(question);
    ASSERT_FALSE(answer.plans.empty());
    double before = -INFINITY;
    for (const ServingOffer& offer : answer.plans) {
      const std::optional<double> score = score_of(offer.quote, entry.value);
      ASSERT_TRUE(score);
      EXPECT_GE(*score, before);
      before = *score;
    }
    const auto& best = answer.by_objective[static_cast<std::size_t>(entry.value)];
    ASSERT_TRUE(best);
    EXPECT_EQ(score_of(best->quote, entry.value),
              score_of(answer.plans.front().quote, entry.value));
    EXPECT_EQ(answer.by_machine.size(), 2u);
  }
}

TEST(ServingPlanner, EveryOfferKeepsTheLimitsAndServesTheRate) {
  ServingQuestion question = serving_question(
      "llama-3.1-70b", {serving_on("h100"), serving_on("mi300x", 64), serving_on("gb200")});
  question.limits = {.ttft = Seconds(1), .tpot = Seconds(0.04)};
  question.best = 1000;
  for (const double rate : {0.3, 7.0, 90.0}) {
    question.rate = rate;
    for (const ServingOffer& offer : answer_to(question).plans) {
      EXPECT_TRUE(question.limits.met(offer.prediction)) << print_layout(offer.plan);
      EXPECT_NEAR(offer.prediction.requests, rate, 1e-3 * rate) << print_layout(offer.plan);
      EXPECT_GE(offer.requests_max, rate * (1 - 1e-9));
      EXPECT_TRUE(offer.prediction.fits);
      EXPECT_EQ(offer.bounds.back(), ServingBound::kRate);
    }
  }
}

TEST(ServingPlanner, LooserLimitsNeverCostMore) {
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100", 16)});
  double before = INFINITY;
  for (double limit = 0.02; limit < 1; limit *= 1.6) {
    question.limits = {.ttft = Seconds(20 * limit), .tpot = Seconds(limit)};
    const double cost = *answer_to(question).plans.front().quote.dollars_per_million;
    EXPECT_LE(cost, before * (1 + 1e-9)) << limit;
    before = cost;
  }
}

TEST(ServingPlanner, AHigherRateNeverTakesFewerAccelerators) {
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100")});
  question.limits.tpot = Seconds(0.05);
  double before = 0;
  for (double rate = 0.5; rate < 500; rate *= 1.7) {
    question.rate = rate;
    const double accelerators = answer_to(question).plans.front().accelerators();
    EXPECT_GE(accelerators, before) << rate;
    before = accelerators;
  }
}

TEST(ServingPlanner, MoreAcceleratorsNeverServeFewerRequests) {
  ServingQuestion question = serving_question("llama-3.1-70b", {});
  double before = 0;
  for (const std::uint64_t count : {2u, 4u, 8u, 16u, 40u}) {
    question.machines = {serving_on("h100", count)};
    question.best = 1000;
    double most = 0;
    for (const ServingOffer& offer : answer_to(question).plans) {
      EXPECT_LE(offer.accelerators(), static_cast<double>(count));
      most = std::max(most, offer.requests_max);
    }
    EXPECT_GE(most, before);
    before = most;
  }
}

TEST(ServingPlanner, TheTermsOfATokenAreItsTime) {
  const ServingQuestion question = serving_question("deepseek-v3", {serving_on("h200", 8)});
  for (const ServingOffer& offer : answer_to(question).plans) {
    const ServingPrediction& p = offer.prediction;
    EXPECT_NEAR(p.breakdown.total() * question.output, p.e2e.value(), 1e-9 * p.e2e.value());
  }
}

TEST(ServingPlanner, EveryPartOfTheCatalogHasAServiceOrAReason) {
  ServingQuestion question = serving_question("llama-3.1-8b", {});
  for (const Accelerator& accelerator : builtin_facts().all<Accelerator>()) {
    question.machines.push_back(serving_choice(builtin_facts(), accelerator, std::nullopt));
  }
  const ServingAnswer answer = answer_to(question);
  EXPECT_EQ(answer.by_machine.size() + answer.refused.size(), question.machines.size());
  EXPECT_GT(answer.by_machine.size(), 20u);
  for (const ServingOffer& offer : answer.by_machine) {
    EXPECT_TRUE(is_finite(offer.prediction)) << question.machines[offer.machine].label;
    EXPECT_GT(*offer.quote.dollars_per_million, 0);
  }
  for (const ServingRefusal& refusal : answer.refused) EXPECT_FALSE(refusal.why.message.empty());
}

TEST(ServingPlanner, SaysThatMemoryBindsAndWhatHelps) {
  const std::string why = refusal_of(serving_question("llama-3.1-70b", {serving_on("l4", 1)}));
  EXPECT_NE(why.find("out of memory"), std::string::npos) << why;
  EXPECT_NE(why.find("4 accelerators"), std::string::npos) << why;
  EXPECT_NE(why.find("GiB of memory per accelerator"), std::string::npos) << why;
}

TEST(ServingPlanner, AnInstanceSpansNodesWhereNoneHoldsTheModel) {
  ServingQuestion question = serving_question("deepseek-v3", {serving_on("h100")});
  question.best = 1000;
  const ServingAnswer answer = answer_to(question);
  for (const ServingOffer& offer : answer.plans) {
    EXPECT_GE(devices_of(offer.plan), 16) << print_layout(offer.plan);
    EXPECT_EQ(instance_nodes(question.machines[0], offer.plan), devices_of(offer.plan) / 8);
    EXPECT_TRUE(offer.prediction.fits);
  }
  const std::string told = fmt::format("{}", fmt::join(answer.assumptions, "\n"));
  EXPECT_NE(told.find("no 8 of them hold the model in"), std::string::npos) << told;
  EXPECT_NE(told.find("a replica of a live service is one node"), std::string::npos) << told;
  // A model that a node holds stays in it.
  question = serving_question("llama-3.1-405b", {serving_on("h100")});
  question.formats = {NumberFormat::kFp8};
  question.best = 1000;
  for (const ServingOffer& offer : answer_to(question).plans) EXPECT_LE(devices_of(offer.plan), 8);
}

TEST(ServingPlanner, WhatJoinsTheNodesIsPriced) {
  ServingQuestion question = serving_question("llama-3.1-405b", {serving_on("h100", 16)});
  question.formats = {NumberFormat::kBf16};
  const ServingAnswer usual = answer_to(question);
  const auto cost = [](const ServingAnswer& answer) {
    return *answer.plans.front().quote.dollars_per_million;
  };
  for (Tier& tier : question.machines[0].joined->tiers) tier.quality /= 100;
  EXPECT_GT(cost(answer_to(question)), cost(usual));
  question.machines[0].joined.reset();
  const std::string why = refusal_of(question);
  EXPECT_NE(why.find("No instance over several nodes is planned, as the network of"),
            std::string::npos)
      << why;
  question.machines = {serving_on("h100", 8)};
  const std::string more = refusal_of(question);
  EXPECT_NE(more.find("16 accelerators"), std::string::npos) << more;
}

TEST(ServingPlanner, MoreNodesNeverMakeTheBestPlanDearer) {
  for (const char* model : {"llama-3.1-405b", "deepseek-v3"}) {
    ServingQuestion question = serving_question(model, {});
    question.formats = {NumberFormat::kBf16};
    question.limits.tpot = Seconds(0.1);
    double before = INFINITY;
    for (const std::uint64_t count : {32u, 40u, 64u, 128u, 136u}) {
      question.machines = {serving_on("h100", count)};
      const double cost = *answer_to(question).plans.front().quote.dollars_per_million;
      EXPECT_LE(cost, before * (1 + 1e-9)) << model << " on " << count;
      before = cost;
    }
  }
}

TEST(ServingPlanner, TheObjectiveRackNamesTheFactItLacks) {
  ServingQuestion question = serving_question("llama-3.1-8b", {serving_on("gaudi3", 8)});
  question.objective = ServingObjective::kRack;
  const std::string why = refusal_of(question);
  EXPECT_NE(why.find("states nodes_per_rack or rack_accelerators; --catalog DIR"),
            std::string::npos)
      << why;
}

TEST(ServingPlanner, TheChangesItNamesHelp) {
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100", 8)});
  question.rate = 1000;
  const std::string rate = refusal_of(question);
  EXPECT_NE(rate.find("--rate 1000 is too high"), std::string::npos) << rate;
  const std::size_t at = rate.find("; ") + 2;
  question.machines = {serving_on("h100", std::stoull(rate.substr(at)))};
  answer_to(question);
  const std::string slower = "What would help: --rate ";
  ASSERT_NE(rate.find(slower), std::string::npos) << rate;
  question.machines = {serving_on("h100", 8)};
  question.rate = std::stod(rate.substr(rate.find(slower) + slower.size()));
  answer_to(question);

  question = serving_question("llama-3.1-70b", {serving_on("h100", 8)});
  question.limits.tpot = Seconds(1e-4);
  const std::string tpot = refusal_of(question);
  const std::string helps = "What would help: --tpot ";
  ASSERT_NE(tpot.find(helps), std::string::npos) << tpot;
  question.limits.tpot = Seconds(std::stod(tpot.substr(tpot.find(helps) + helps.size())));
  answer_to(question);

  question.limits = {.ttft = Seconds(1e-4), .tpot = {}};
  const std::string ttft = refusal_of(question);
  const std::string first = "What would help: --ttft ";
  ASSERT_NE(ttft.find(first), std::string::npos) << ttft;
  question.limits.ttft = Seconds(std::stod(ttft.substr(ttft.find(first) + first.size())));
  answer_to(question);
}

TEST(ServingPlanner, AMissingFigureOrEngineRefusesTheMachineAlone) {
  ServingQuestion question =
      serving_question("llama-3.1-8b", {serving_on("tpu-v5e"), serving_on("h100")});
  question.objective = ServingObjective::kEnergy;
  const ServingAnswer answer = answer_to(question);
  ASSERT_EQ(answer.refused.size(), 1u);
  EXPECT_NE(answer.refused[0].why.message.find("TDP"), std::string::npos);
  question.engine = "tensorrt-llm";
  question.machines = {serving_on("mi300x")};
  EXPECT_NE(refusal_of(question).find("does not run on amd-mi300x"), std::string::npos);
}

TEST(ServingPlanner, WrongSizesAreWrongInput) {
  const auto kind_of = [](auto change) {
    ServingQuestion question = serving_question("llama-3.1-8b", {serving_on("h100")});
    change(question);
    const Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
    return answer ? ErrorKind::kEnvironment : answer.error().kind;
  };
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.input = 0; }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.output = 1.5; }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.rate = NAN; }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.limits.ttft = Seconds(-1); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.machines.clear(); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([](ServingQuestion& q) { q.model = &served_model("dit-xl-2"); }),
            ErrorKind::kInput);
}

}  // namespace
}  // namespace orrery

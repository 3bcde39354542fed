#include "planner/search.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}
const ModelCatalog& models() {
  static const ModelCatalog loaded = *ModelCatalog::load(builtin_models(), {});
  return loaded;
}
const Calibration& calibration() {
  static const Calibration loaded = *Calibration::load(builtin_calibration(), {});
  return loaded;
}

struct Setting {
  std::string model = "llama-3.1-8b";
  std::string accelerator = "h100";
  std::uint64_t accelerators = 64;
  double global_batch = 128;
  double sequence = 8192;
  AttentionKernel attention = AttentionKernel::kFlash;
};

struct Prepared {
  Machine machine;
  TrainingModel model;
  PlanSpace space;
};

Prepared prepare(const Setting& setting) {
  const Accelerator* accelerator = *catalog().require<Accelerator>(setting.accelerator);
  Machine machine =
      *machine_of(catalog(), {.accelerator = accelerator, .accelerators = setting.accelerators});
  const CatalogModel* model = *models().require(setting.model);
  TrainingJob job{.model = &model->model,
                  .sequence = Tokens(setting.sequence),
                  .global_batch = setting.global_batch,
                  .attention = setting.attention};
  TrainingModel training = *TrainingModel::make(job, machine, calibration());
  PlanSpace space = space_of(machine);
  return {std::move(machine), std::move(training), std::move(space)};
}

SearchResult found(const Prepared& p, Effort effort, std::size_t best = 5) {
  return search(p.model, p.space, {.best = best, .effort = effort});
}

void expect_same(const SearchResult& a, const SearchResult& b) {
  ASSERT_EQ(a.best.size(), b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    EXPECT_EQ(a.best[i].plan, b.best[i].plan) << i;
    EXPECT_EQ(a.best[i].score, b.best[i].score) << i;
  }
  EXPECT_EQ(a.counters.enumerated, b.counters.enumerated);
}

template <class T>
T pick(Rng& rng, const std::vector<T>& from) {
  return from[rng.below(from.size())];
}

TEST(Search, PruningFindsWhatLookingAtEverythingFindsInRandomSpaces) {
  Rng rng(20);
  const std::vector<std::string> names = {"llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b",
                                          "gpt-3-175b"};
  const std::vector<std::string> types = {"h100", "a100-80g", "mi300x", "b200"};
  std::uint64_t pruned = 0;
  for (int round = 0; round < 25; ++round) {
    const Setting setting{.model = pick(rng, names),
                          .accelerator = pick(rng, types),
                          .accelerators = std::uint64_t{8} << rng.below(4),
                          .global_batch = pick<double>(rng, {32, 48, 64, 256}),
                          .sequence = pick<double>(rng, {2048, 4096, 16384}),
                          .attention = pick<AttentionKernel>(
                              rng, {AttentionKernel::kFlash, AttentionKernel::kUnfused})};
    Prepared p = prepare(setting);
    if (rng.below(2) == 0) p.space.abilities.offload = {{Offload::kNone, Offload::kOptimizer}};
    if (rng.below(3) == 0) p.space.pp = std::vector<std::uint32_t>{1, 2, 4};
    if (rng.below(3) == 0) p.space.recompute = Recompute::kFull;
    if (rng.below(4) == 0) p.space.recompute_layers = std::vector<std::uint32_t>{0, 2};
    const std::size_t best = 1 + rng.below(6);
    const SearchResult all = found(p, Effort::kExhaustive, best);
    const SearchResult quick = found(p, Effort::kPruned, best);
    SCOPED_TRACE(setting.model + " on " + setting.accelerator);
    expect_same(all, quick);
    EXPECT_EQ(all.counters.pruned, 0u);
    pruned += quick.counters.pruned;
  }
  EXPECT_GT(pruned, 10'000u);
}

TEST(Search, TwoRunsAgree) {
  const Prepared p = prepare({});
  expect_same(found(p, Effort::kPruned), found(p, Effort::kPruned));
}

TEST(Search, APlanCostsWhatItCostsAlone) {
  const Prepared p = prepare({.model = "mixtral-8x7b"});
  const SearchResult result = found(p, Effort::kExhaustive, 50);
  ASSERT_EQ(result.best.size(), 50u);
  for (const RankedPlan& ranked : result.best) {
    const StepCost alone = p.model.evaluate(ranked.plan);
    EXPECT_EQ(ranked.cost.seconds, alone.seconds);
    EXPECT_EQ(ranked.cost.memory.total(), alone.memory.total());
    EXPECT_TRUE(p.model.check(ranked.plan));
    EXPECT_LE(alone.memory.total(), p.model.memory_limit());
  }
}

TEST(Search, NoPlanUndercutsItsFloor) {
  Prepared p = prepare({.model = "llama-3.1-70b"});
  const SearchResult result = found(p, Effort::kExhaustive, 2000);
  for (const RankedPlan& ranked : result.best) {
    const double floor = step_floor(p.model, ranked.plan, p.model.block_costs(ranked.plan));
    EXPECT_LE(floor * (1 - 1e-9), ranked.cost.seconds);
    EXPECT_GT(floor, 0.2 * ranked.cost.seconds);
  }
}

TEST(Search, EveryCandidateIsCountedOnce) {
  const Prepared p = prepare({.model = "llama-3.1-70b"});
  for (const Effort effort : {Effort::kPruned, Effort::kExhaustive}) {
    const SearchCounters c = found(p, effort).counters;
    EXPECT_EQ(c.enumerated, c.out_of_memory + c.pruned + c.evaluated);
    EXPECT_GT(c.out_of_memory, 0u);
  }
}

TEST(Search, TheFrontierTradesTimeForMemory) {
  const Prepared p = prepare({});
  const SearchResult result = found(p, Effort::kExhaustive);
  ASSERT_GT(result.frontier.size(), 2u);
  EXPECT_EQ(result.frontier.front().cost.seconds, result.best.front().cost.seconds);
  for (std::size_t i = 1; i < result.frontier.size(); ++i) {
    EXPECT_GT(result.frontier[i].cost.seconds, result.frontier[i - 1].cost.seconds);
    EXPECT_LT(result.frontier[i].cost.memory.total(), result.frontier[i - 1].cost.memory.total());
  }
}

TEST(Search, FixedDimensionsStayFixed) {
  Prepared p = prepare({.model = "llama-3.1-70b"});
  p.space.tp = 4;
  p.space.pp = 4;
  p.space.vpp = 5;
  p.space.cp = 1;
  p.space.recompute = Recompute::kFull;
  const SearchResult result = found(p, Effort::kPruned);
  ASSERT_FALSE(result.best.empty());
  for (const RankedPlan& ranked : result.best) {
    EXPECT_EQ(ranked.plan.tp, 4u);
    EXPECT_EQ(ranked.plan.pp, 4u);
    EXPECT_EQ(ranked.plan.vpp, 5u);
    EXPECT_EQ(ranked.plan.dp, 4u);
    EXPECT_EQ(ranked.plan.recompute, Recompute::kFull);
  }
}

TEST(Search, ARuntimeOnlyGetsPlansItDeclares) {
  Prepared p = prepare({});
  p.space.abilities.name = "plain data parallel";
  p.space.abilities.tensor_max = 1;
  p.space.abilities.pipeline_max = 1;
  p.space.abilities.context_max = 1;
  p.space.abilities.zero = {3};
  const SearchResult result = found(p, Effort::kPruned);
  ASSERT_FALSE(result.best.empty());
  for (const RankedPlan& ranked : result.best) {
    EXPECT_EQ(ranked.plan.dp, 64u);
    EXPECT_EQ(ranked.plan.zero, 3u);
  }
}

TEST(Search, WhatTheRuntimeDoesNotDeclareCannotBeAskedFor) {
  Prepared p = prepare({});
  p.space.abilities.name = "mine";
  p.space.abilities.zero = {0, 1};
  p.space.zero = 3;
  const SearchResult result = found(p, Effort::kPruned);
  EXPECT_TRUE(result.best.empty());
  ASSERT_TRUE(result.first_refusal);
  EXPECT_EQ(result.first_refusal->message, "mine: zero 3 is not declared");
}

TEST(Search, AbilitiesThatAllowNothingAreRefused) {
  RuntimeAbilities able;
  EXPECT_TRUE(check_abilities(able));
  able.zero = {0, 4};
  EXPECT_EQ(check_abilities(able).error().message, "zero: 4: expected 0 to 3");
  able.zero = {};
  EXPECT_EQ(check_abilities(able).error().message, "zero: expected at least one value");
  able.zero = {1};
  able.tensor_max = 0;
  EXPECT_EQ(check_abilities(able).error().message, "tensor_max: expected 1 or more");
}

TEST(Search, OffloadingIsChosenOnlyWhenAskedFor) {
  Prepared p = prepare({});
  for (const RankedPlan& ranked : found(p, Effort::kPruned).best) {
    EXPECT_EQ(ranked.plan.offload, Offload::kNone);
  }
  p.space.offload = Offload::kOptimizer;
  const SearchResult asked = found(p, Effort::kPruned);
  ASSERT_FALSE(asked.best.empty());
  EXPECT_EQ(asked.best.front().plan.offload, Offload::kOptimizer);
}

TEST(Search, AsFewLayersAreRecomputedAsFit) {
  Prepared p = prepare({.model = "llama-3.1-70b", .accelerators = 32, .global_batch = 64});
  p.space.tp = 8;
  p.space.pp = 4;
  p.space.micro_batch = 2;
  p.space.abilities.recompute = {Recompute::kFull};
  const SearchResult open = found(p, Effort::kPruned, 1);
  std::vector<std::uint32_t> numbers = {0};
  for (std::uint32_t n = 1; n < 20; ++n) numbers.push_back(n);
  p.space.recompute_layers = numbers;
  const SearchResult each = found(p, Effort::kExhaustive, 1);
  ASSERT_FALSE(open.best.empty() || each.best.empty());
  EXPECT_EQ(open.best.front().plan, each.best.front().plan);
  EXPECT_GT(open.best.front().plan.recompute_layers, 0u);
}

TEST(Search, AScoreOfOnesOwnDecidesTheOrder) {
  const Prepared p = prepare({});
  const auto memory = [](const ParallelPlan&, const StepCost& cost) { return cost.memory.total(); };
  const SearchResult result =
      search(p.model, p.space, {.best = 3, .effort = Effort::kPruned, .score = memory});
  const SearchResult all = found(p, Effort::kExhaustive);
  ASSERT_EQ(result.best.size(), 3u);
  EXPECT_EQ(result.best.front().score, all.frontier.back().cost.memory.total());
}

TEST(Search, WhenNothingFitsTheLeastHungryPlanIsNamed) {
  const Prepared p = prepare({.model = "llama-3.1-405b", .accelerators = 8});
  const SearchResult result = found(p, Effort::kPruned);
  EXPECT_TRUE(result.best.empty());
  ASSERT_TRUE(result.nearest);
  EXPECT_GT(result.nearest->memory.total(), p.model.memory_limit());
}

TEST(Search, WhenNoSplitIsLegalTheFirstRuleIsNamed) {
  Prepared p = prepare({});
  p.space.tp = 7;
  const SearchResult result = found(p, Effort::kPruned);
  EXPECT_TRUE(result.best.empty());
  ASSERT_TRUE(result.first_refusal);
  EXPECT_NE(result.first_refusal->message.find("tp 7"), std::string::npos);
}

}  // namespace
}  // namespace orrery

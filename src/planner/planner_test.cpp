#include "planner/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/software_release.hpp"
#include "planner/launch/layout_text.hpp"
#include "planner/launch/training_stack.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}
const Calibration& calibration() {
  static const Calibration loaded = *Calibration::load(builtin_calibration(), {});
  return loaded;
}
const Model& model(std::string_view name) {
  static const ModelCatalog loaded = *ModelCatalog::load(builtin_models(), {});
  return (*loaded.require(name))->model;
}
const PlannerFacts& facts() {
  static const PlannerFacts all{catalog(), calibration()};
  return all;
}

MachineChoice machine(std::string_view type, std::uint64_t accelerators) {
  const MachineRequest request{.accelerator = *catalog().require<Accelerator>(type),
                               .accelerators = accelerators};
  return {.label = std::string(type) + ":" + std::to_string(accelerators),
          .machine = *machine_of(catalog(), request),
          .request = request,
          .economics = {}};
}

PlanQuestion question(std::string_view name, std::vector<MachineChoice> machines) {
  PlanQuestion q;
  q.job = {.model = &model(name), .sequence = Tokens(8192), .global_batch = 128};
  q.machines = std::move(machines);
  return q;
}

TEST(Planner, TermsSumToTheStepAndTheIntervalHoldsIt) {
  const auto answer = plan(facts(), question("llama-3.1-8b", {machine("h100", 64)}));
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_EQ(answer->plans.size(), 5u);
  for (const PlanOffer& offer : answer->plans) {
    EXPECT_NEAR(offer.cost.terms.total(), offer.cost.seconds, 1e-12 * offer.cost.seconds);
    EXPECT_LE(offer.seconds_low, offer.cost.seconds);
    EXPECT_GE(offer.seconds_high, offer.cost.seconds);
    EXPECT_GT(offer.mfu, 0.05);
    EXPECT_LT(offer.mfu, 0.9);
  }
}

TEST(Planner, MoneyAndEnergyFollowTime) {
  const auto answer = plan(facts(), question("llama-3.1-8b", {machine("h100", 64)}));
  ASSERT_TRUE(answer);
  const PlanOffer& best = answer->plans.front();
  ASSERT_TRUE(best.quote.step_cost && best.quote.step_energy && best.quote.goodput);
  const double hourly = best.quote.step_cost->value() / best.cost.seconds * 3600 / 64;
  EXPECT_GT(hourly, 0.5);
  EXPECT_LT(hourly, 20);
  const double watts = best.quote.step_energy->value() / best.cost.seconds / 64;
  EXPECT_GT(watts, 300);
  EXPECT_LT(watts, 1500);
  EXPECT_NEAR(best.quote.power->value(), watts * 64, 1e-6 * watts * 64);
  EXPECT_GT(best.quote.goodput->effective, 0.9);
  EXPECT_LE(best.quote.goodput->effective, 1);
  const double run = *best.quote.run_steps * best.cost.seconds / best.quote.goodput->effective;
  EXPECT_NEAR(best.quote.run_time->value(), run, 1e-9 * run);
}

TEST(Planner, TheObjectiveDecidesAmongMachines) {
  PlanQuestion q = question("llama-3.1-8b", {machine("h100", 8), machine("h100", 64)});
  const auto fastest = plan(facts(), q);
  ASSERT_TRUE(fastest);
  EXPECT_EQ(fastest->plans.front().machine, 1u);
  q.objective = Objective::kCost;
  const auto cheapest = plan(facts(), q);
  ASSERT_TRUE(cheapest);
  EXPECT_LE(*cheapest->plans.front().quote.step_cost, *fastest->plans.front().quote.step_cost);
  q.objective = Objective::kEnergy;
  const auto leanest = plan(facts(), q);
  ASSERT_TRUE(leanest);
  EXPECT_LE(*leanest->plans.front().quote.step_energy, *fastest->plans.front().quote.step_energy);
}

TEST(Planner, NoParetoPlanBeatsAnotherInEverything) {
  PlanQuestion q = question("llama-3.1-8b", {machine("h100", 8), machine("h100", 64),
                                             machine("a100-80g", 64), machine("mi300x", 32)});
  const auto answer = plan(facts(), q);
  ASSERT_TRUE(answer);
  ASSERT_GE(answer->pareto.size(), 2u);
  for (std::size_t i = 1; i < answer->pareto.size(); ++i) {
    const PlanOffer& a = answer->pareto[i - 1];
    const PlanOffer& b = answer->pareto[i];
    EXPECT_LE(a.cost.seconds, b.cost.seconds);
    EXPECT_TRUE(*b.quote.step_cost <= *a.quote.step_cost ||
                *b.quote.step_energy <= *a.quote.step_energy);
  }
}

TEST(Planner, ABudgetIsKeptOrRefusedWithTheCheapestRun) {
  PlanQuestion q = question("llama-3.1-8b", {machine("h100", 8), machine("h100", 64)});
  q.objective = Objective::kTimeUnderBudget;
  q.run = 1e12;
  q.budget = Dollars(1e9);
  const auto rich = plan(facts(), q);
  ASSERT_TRUE(rich);
  EXPECT_EQ(rich->plans.front().machine, 1u);
  q.budget = Dollars(10);
  const auto poor = plan(facts(), q);
  ASSERT_FALSE(poor);
  EXPECT_EQ(poor.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(poor.error().message.find("cheapest run costs"), std::string::npos);
}

TEST(Planner, OutOfMemoryNamesTheLimitAndWhatWouldHelp) {
  const auto answer = plan(facts(), question("llama-3.1-405b", {machine("h100", 8)}));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kInfeasible);
  const std::string& text = answer.error().message;
  EXPECT_NE(text.find("out of memory"), std::string::npos) << text;
  EXPECT_NE(text.find("accelerators (tp="), std::string::npos) << text;
  EXPECT_NE(text.find("GiB of memory per accelerator"), std::string::npos) << text;
}

TEST(Planner, WhatItSaysWouldHelpHelps) {
  PlanQuestion q = question("llama-3.1-70b", {machine("h100", 64)});
  ASSERT_TRUE(read_layout("tp=1,pp=1,zero=0", q.space));
  const auto answer = plan(facts(), q);
  ASSERT_FALSE(answer);
  const std::string& text = answer.error().message;
  const std::string marker = "another layout, such as ";
  const std::size_t at = text.find(marker);
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t begin = at + marker.size();
  PlanSpace other;
  ASSERT_TRUE(read_layout(text.substr(begin, text.find(';', begin) - begin), other));
  q.space = other;
  EXPECT_TRUE(plan(facts(), q));
}

TEST(Planner, AnImpossibleSplitIsWrongInputThatNamesTheRule) {
  PlanQuestion q = question("llama-3.1-8b", {machine("h100", 48)});
  ASSERT_TRUE(read_layout("tp=3", q.space));
  const auto answer = plan(facts(), q);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kInput);
  EXPECT_NE(answer.error().message.find("heads"), std::string::npos) << answer.error().message;
}

TEST(Planner, APowerCapTradesTimeForEnergy) {
  PlanQuestion q = question("llama-3.1-8b", {machine("h100", 64)});
  const auto free = plan(facts(), q);
  q.machines[0].economics.power.cap = Watts(450);
  const auto capped = plan(facts(), q);
  ASSERT_TRUE(free && capped);
  EXPECT_GT(capped->plans.front().cost.seconds, free->plans.front().cost.seconds);
  EXPECT_LT(*capped->plans.front().quote.power, *free->plans.front().quote.power);
}

bool assumes(const PlanAnswer& answer, std::string_view words) {
  for (const std::string& each : answer.assumptions) {
    if (each.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(Planner, TheReleaseIsNamedAndDropsTheFirstSoftwareOfBlackwell) {
  PlanQuestion q = question("llama-3.1-70b", {machine("b200", 64)});
  const auto first = plan(facts(), q);
  q.job.release = newest_release().years;
  q.job.release_scope = ReleaseScope::kMegatron;
  const auto newest = plan(facts(), q);
  ASSERT_TRUE(first && newest);
  EXPECT_TRUE(assumes(*first, "1.25 times as long")) << first->assumptions.back();
  EXPECT_TRUE(assumes(*newest, "NeMo release " + std::string(newest_release().name)));
  EXPECT_LT(newest->plans.front().cost.seconds, 0.9 * first->plans.front().cost.seconds);
}

TEST(Planner, APartNobodyMeasuredSaysSoAndHasAWideInterval) {
  const auto ratio = [](const PlanOffer& offer) {
    return std::pair(offer.seconds_low / offer.cost.seconds,
                     offer.seconds_high / offer.cost.seconds);
  };
  const auto gaudi = plan(facts(), question("llama-3.1-8b", {machine("gaudi3", 64)}));
  ASSERT_TRUE(gaudi);
  EXPECT_TRUE(assumes(*gaudi, "no measured training run on intel-gaudi3"));
  EXPECT_NEAR(ratio(gaudi->plans.front()).first, 0.6, 1e-9);
  EXPECT_NEAR(ratio(gaudi->plans.front()).second, 1.6, 1e-9);
  const auto hopper = plan(facts(), question("llama-3.1-8b", {machine("h100", 64)}));
  const auto sibling = plan(facts(), question("llama-3.1-8b", {machine("h20", 64)}));
  ASSERT_TRUE(hopper && sibling);
  EXPECT_FALSE(assumes(*hopper, "no measured training run"));
  EXPECT_TRUE(assumes(*sibling, "no measured training run"));
  EXPECT_LT(ratio(sibling->plans.front()).first, ratio(hopper->plans.front()).first);
  EXPECT_GT(ratio(sibling->plans.front()).second, ratio(hopper->plans.front()).second);
}

TEST(Planner, AModelOfImagesHasARunOnlyWhereItsLengthIsStated) {
  PlanQuestion q = question("vit-h-14", {machine("h100", 32)});
  q.job.global_batch = 4096;
  const auto open = plan(facts(), q);
  ASSERT_TRUE(open) << open.error().text();
  EXPECT_EQ(open->run.unit, SampleUnit::kImages);
  EXPECT_FALSE(open->run.length);
  const PlanOffer& best = open->plans.front();
  EXPECT_FALSE(best.quote.run_time || best.quote.run_steps || best.quote.run_cost);
  EXPECT_NEAR(best.quote.tokens_per_second, 4096 / best.cost.seconds, 1e-6);
  EXPECT_TRUE(assumes(*open, "--samples states it in images"));
  q.run = 1'281'167;
  const auto stated = plan(facts(), q);
  ASSERT_TRUE(stated);
  EXPECT_EQ(*stated->plans.front().quote.run_steps, std::ceil(1'281'167 / 4096.0));
  q.run.reset();
  q.objective = Objective::kTimeUnderBudget;
  q.budget = Dollars(1e6);
  EXPECT_EQ(plan(facts(), q).error().kind, ErrorKind::kInput);
}

TEST(Planner, DifferencesAddUpToTheDifferenceOfTheSteps) {
  const auto answer = plan(facts(), question("llama-3.1-70b", {machine("h100", 64)}));
  ASSERT_TRUE(answer);
  const Breakdown& one = answer->plans[0].cost.terms;
  const Breakdown& two = answer->plans[1].cost.terms;
  const auto found = differences(one, two);
  double sum = 0;
  for (const TermDifference& each : found) sum += each.seconds;
  EXPECT_NEAR(sum, two.total() - one.total(), 1e-9);
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_GE(std::abs(found[i - 1].seconds), std::abs(found[i].seconds));
  }
}

// --- What no software trains on
// -------------------------------------------------------------------

TEST(PlannerStacks, APartWithoutATrainingStackIsRefusedByTheRowThatSaysSo) {
  const auto inferentia = plan(facts(), question("gpt2", {machine("inf1", 16)}));
  ASSERT_FALSE(inferentia);
  EXPECT_EQ(inferentia.error().kind, ErrorKind::kInfeasible);
  const std::string& why = inferentia.error().message;
  for (const char* part : {"aws-inferentia1", "pytorch: inference only", "torch-neuron (1.13)",
                           "jax: no", "training runs on aws-trainium"}) {
    EXPECT_NE(why.find(part), std::string::npos) << part << " in " << why;
  }
  for (const char* type : {"inf2", "meta-mtia-v2", "k80"}) {
    EXPECT_FALSE(plan(facts(), question("gpt2", {machine(type, 8)}))) << type;
  }
}

TEST(PlannerStacks, TheOthersOfAQuestionArePlanned) {
  const auto answer = plan(facts(), question("gpt2", {machine("inf1", 16), machine("h100", 8)}));
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_EQ(answer->refused.size(), 1u);
  EXPECT_EQ(answer->refused.front().machine, 0u);
  for (const PlanOffer& offer : answer->plans) EXPECT_EQ(offer.machine, 1u);
}

TEST(PlannerStacks, EveryAcceleratorThatSomeFrameworkTrainsOnIsPlanned) {
  std::size_t refused = 0;
  for (const Accelerator& accelerator : catalog().all<Accelerator>()) {
    refused += check_training_stack(catalog(), accelerator) ? 0 : 1;
  }
  EXPECT_GE(refused, 4u);
  for (const char* type : {"h100", "mi300x", "tpu-v5p", "trn1", "gaudi3", "maia100", "v100"}) {
    const Accelerator* found = catalog().find<Accelerator>(type);
    ASSERT_NE(found, nullptr) << type;
    EXPECT_TRUE(check_training_stack(catalog(), *found)) << type;
  }
}

TEST(PlannerStacks, WhatAGenerationLacksIsAssumedAndSaid) {
  const auto answer = plan(facts(), question("gpt2", {machine("v100", 8)}));
  ASSERT_TRUE(answer) << answer.error().text();
  const auto said = [&](const std::string& part) {
    return std::any_of(answer->assumptions.begin(), answer->assumptions.end(),
                       [&](const std::string& all) { return all.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(said("has no bf16"));
  EXPECT_TRUE(said("flash attention has no kernels for nvidia-v100"));
}

// --- Memory of hosts
// --------------------------------------------------------------------------------

PlanQuestion offloading(double host_gigabytes_a_node) {
  MachineChoice choice = machine("h100", 64);
  choice.machine.host_memory = host_gigabytes_a_node * 1e9 / 8;
  choice.request.reset();
  PlanQuestion q = question("llama-3.1-405b", {std::move(choice)});
  q.space.offload = Offload::kOptimizer;
  return q;
}

TEST(PlannerHosts, OptimizerStatesThatNoHostHoldsAreRefusedWithWhatIsNeededAndThere) {
  const auto small = plan(facts(), offloading(64));
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().kind, ErrorKind::kInfeasible);
  for (const char* part : {"out of host memory", "per node", "dgx-h100 has 59.6 GiB"}) {
    EXPECT_NE(small.error().message.find(part), std::string::npos) << small.error().message;
  }
  const auto large = plan(facts(), offloading(2000));
  ASSERT_TRUE(large) << large.error().text();
  const TrainingMemory& memory = large->plans.front().cost.memory;
  EXPECT_GE(memory.host * 64, 0.99 * 12 * 405e9) << "all states of the optimizer";
  EXPECT_EQ(memory.optimizer, 0);
}

TEST(PlannerHosts, TheCatalogsNodesSayHowMuchTheirHostsHave) {
  EXPECT_NEAR(*machine("h100", 64).machine.host_memory, 2199023255552.0 / 8, 1);
}

TEST(PlannerHosts, MoreHostMemoryNeverTakesAPlanAway) {
  bool fitted = false;
  for (const double gigabytes : {64, 400, 600, 800, 2000, 8000}) {
    const bool fits = plan(facts(), offloading(gigabytes)).has_value();
    EXPECT_TRUE(fits || !fitted) << gigabytes;
    fitted = fitted || fits;
  }
  EXPECT_TRUE(fitted);
}

}  // namespace
}  // namespace orrery

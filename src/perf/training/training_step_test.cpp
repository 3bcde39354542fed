#include "perf/training/training_step.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "perf/repository_facts_test.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

const Model& model_named(std::string_view name) {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  const CatalogModel* found = kModels->find(name);
  EXPECT_NE(found, nullptr) << name;
  return found->model;
}

Machine machine_named(std::string_view name, std::uint64_t count) {
  const Accelerator* accelerator = builtin_facts().find<Accelerator>(name);
  EXPECT_NE(accelerator, nullptr) << name;
  const Result<Machine> machine =
      machine_of(builtin_facts(), {.accelerator = accelerator, .accelerators = count});
  return *machine;
}

TrainingModel training(const TrainingJob& job, const Machine& machine) {
  Result<TrainingModel> model = TrainingModel::make(job, machine, builtin_constants());
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  return *std::move(model);
}

TrainingJob megatron_job(std::string_view name, double batch) {
  return {.model = &model_named(name),
          .sequence = Tokens{2048},
          .global_batch = batch,
          .precision = {.format = NumberFormat::kFp16},
          .attention = AttentionKernel::kUnfused};
}

TEST(TrainingStep, its_terms_sum_to_it) {
  const TrainingJob job{
      .model = &model_named("llama-3.1-405b"), .sequence = Tokens{8192}, .global_batch = 2048};
  const TrainingModel model = training(job, machine_named("h100", 16384));
  const ParallelPlan plan{.tp = 8,
                          .pp = 16,
                          .vpp = 8,
                          .dp = 128,
                          .zero = 1,
                          .sequence_parallel = SequenceParallel::kOn};
  ASSERT_TRUE(model.check(plan));
  const StepCost cost = model.evaluate(plan);
  double sum = 0;
  for (const double term : cost.terms.seconds) {
    EXPECT_GE(term, 0);
    sum += term;
  }
  EXPECT_DOUBLE_EQ(sum, cost.seconds);
}

// Llama 3.1 405B on 16,384 H100, published MFU 0.41 (Llama team 2024).
TEST(TrainingStep, llama_405b_on_16384_h100_is_near_its_published_utilisation) {
  const TrainingJob job{
      .model = &model_named("llama-3.1-405b"), .sequence = Tokens{8192}, .global_batch = 2048};
  const TrainingModel model = training(job, machine_named("h100", 16384));
  const ParallelPlan plan{.tp = 8,
                          .pp = 16,
                          .vpp = 8,
                          .dp = 128,
                          .zero = 1,
                          .sequence_parallel = SequenceParallel::kOn};
  EXPECT_NEAR(model.utilisation(model.evaluate(plan).seconds), 0.41, 0.07);
}

// Narayanan et al. 2021, table 1, the 1 T row: 102.63 s.
TEST(TrainingStep, gpt_1t_on_3072_a100_takes_about_its_published_time) {
  const TrainingJob job = megatron_job("megatron-gpt-1t", 3072);
  const TrainingModel model = training(job, machine_named("a100-80gb-sxm", 3072));
  const ParallelPlan plan{.tp = 8, .pp = 64, .dp = 6, .recompute = Recompute::kFull};
  ASSERT_TRUE(model.check(plan));
  EXPECT_NEAR(model.evaluate(plan).seconds / 102.63, 1, 0.1);
}

// Korthikanti et al. 2022, figure 1: weights with optimizer, activations without recomputation and
// with selective recomputation and sequence parallelism; GiB, of the first stage.
struct MemoryPoint {
  std::string_view model;
  ParallelPlan plan;
  double batch;
  double states;
  double none;
  double selective;
};

TEST(TrainingMemory, is_that_of_korthikanti_et_al) {
  const MemoryPoint points[] = {
      {"megatron-gpt-22b", {.tp = 8, .micro_batch = 4}, 4, 45.5625, 59.25, 9.5625},
      {"megatron-gpt-175b", {.tp = 8, .pp = 8, .vpp = 3}, 64, 45.5625, 66.84375, 12.3515625},
      {"megatron-gpt-530b",
       {.tp = 8, .pp = 35, .vpp = 3},
       280,
       31.640625,
       114.0234375,
       23.076171875},
      {"megatron-gpt-1t", {.tp = 8, .pp = 64}, 512, 32.958984375, 131.25, 26.5625}};
  for (const MemoryPoint& point : points) {
    const TrainingJob job = megatron_job(point.model, point.batch);
    const TrainingModel model = training(job, machine_named("a100-80gb-sxm", point.plan.ranks()));
    const TrainingMemory none = model.memory(point.plan);
    EXPECT_NEAR(none.activations / kGibibyte / point.none, 1, 0.03) << point.model;
    ParallelPlan selective = point.plan;
    selective.recompute = Recompute::kSelective;
    selective.sequence_parallel = SequenceParallel::kOn;
    const TrainingMemory less = model.memory(selective);
    EXPECT_NEAR(less.activations / kGibibyte / point.selective, 1, 0.03) << point.model;
    // The published figure is of the layers alone.
    const double embedding = model.work().embedding / point.plan.tp;
    const double head = point.plan.pp == 1 && !model.work().tied ? model.work().head : 0;
    const double states =
        (less.weights + less.gradients + less.optimizer - 18 * (embedding + head / point.plan.tp)) /
        kGibibyte;
    EXPECT_NEAR(states / point.states, 1, 0.03) << point.model;
  }
}

ParallelPlan random_plan(Rng& rng, std::uint32_t ranks) {
  ParallelPlan plan;
  plan.tp = 1U << rng.below(4);
  plan.pp = 1U << rng.below(4);
  plan.cp = 1U << rng.below(2);
  plan.dp = std::max(1U, ranks / (plan.tp * plan.pp * plan.cp));
  plan.vpp = plan.pp > 1 && rng.below(2) == 0 ? 2 : 1;
  plan.zero = static_cast<std::uint32_t>(rng.below(4));
  plan.micro_batch = 1U << rng.below(3);
  plan.recompute = static_cast<Recompute>(rng.below(3));
  plan.offload = static_cast<Offload>(rng.below(4));
  plan.sequence_parallel = static_cast<SequenceParallel>(rng.below(2));
  plan.context_exchange = static_cast<ContextExchange>(rng.below(2));
  return plan;
}

TEST(TrainingStep, is_finite_and_positive_for_every_legal_plan_of_every_accelerator) {
  Rng rng = Rng::stream(5, "training step");
  const std::vector<std::string_view> models = {"llama-3.1-8b", "deepseek-v3", "gpt-oss-120b",
                                                "nemotron-3-super-120b", "mixtral-8x7b"};
  int legal = 0;
  for (const Accelerator& accelerator : builtin_facts().all<Accelerator>()) {
    const Result<Machine> machine =
        machine_of(builtin_facts(), {.accelerator = &accelerator, .accelerators = 256});
    if (!machine) continue;
    for (int round = 0; round < 20; ++round) {
      TrainingJob job{.model = &model_named(models[rng.below(models.size())]),
                      .sequence = Tokens{4096},
                      .global_batch = 2048};
      job.precision.format = rng.below(2) == 0 ? NumberFormat::kBf16 : NumberFormat::kFp8;
      const TrainingModel model = training(job, *machine);
      const ParallelPlan plan = random_plan(rng, 256);
      if (!model.check(plan)) continue;
      ++legal;
      const StepCost cost = model.evaluate(plan);
      EXPECT_TRUE(std::isfinite(cost.seconds) && cost.seconds > 0) << accelerator.id;
      EXPECT_TRUE(std::isfinite(cost.memory.total()) && cost.memory.total() > 0) << accelerator.id;
      for (const double term : cost.terms.seconds) EXPECT_GE(term, 0) << accelerator.id;
    }
  }
  EXPECT_GT(legal, 100);
}

TEST(TrainingStep, is_never_slower_on_a_better_machine) {
  Rng rng = Rng::stream(9, "better machine");
  const TrainingJob job{
      .model = &model_named("llama-3.1-70b"), .sequence = Tokens{8192}, .global_batch = 1024};
  const Machine machine = machine_named("h100", 256);
  for (int round = 0; round < 100; ++round) {
    const ParallelPlan plan = random_plan(rng, 256);
    const TrainingModel before = training(job, machine);
    if (!before.check(plan)) continue;
    Machine better = machine;
    switch (rng.below(4)) {
      case 0:
        for (double& peak : better.peak) peak *= 1.2;
        break;
      case 1:
        better.memory_bandwidth *= 1.2;
        break;
      case 2:
        better.tiers[rng.below(2)].bandwidth *= 1.2;
        break;
      default:
        better.host_bandwidth *= 1.2;
        break;
    }
    EXPECT_LE(training(job, better).evaluate(plan).seconds,
              before.evaluate(plan).seconds * (1 + 1e-12));
  }
}

TEST(TrainingStep, recomputation_costs_time_and_saves_memory) {
  const TrainingJob job{
      .model = &model_named("llama-3.1-70b"), .sequence = Tokens{8192}, .global_batch = 128};
  const TrainingModel model = training(job, machine_named("h100", 64));
  ParallelPlan plan{
      .tp = 8, .pp = 4, .dp = 2, .zero = 1, .sequence_parallel = SequenceParallel::kOn};
  const StepCost kept = model.evaluate(plan);
  plan.recompute = Recompute::kFull;
  const StepCost again = model.evaluate(plan);
  plan.recompute_layers = 5;
  const StepCost some = model.evaluate(plan);
  EXPECT_LT(kept.seconds, some.seconds);
  EXPECT_LT(some.seconds, again.seconds);
  EXPECT_GT(kept.memory.total(), some.memory.total());
  EXPECT_GT(some.memory.total(), again.memory.total());
}

TEST(TrainingStep, memory_follows_the_bytes_of_the_format) {
  Rng rng(31);
  TrainingJob job{
      .model = &model_named("llama-3.1-8b"), .sequence = Tokens{8192}, .global_batch = 4096};
  const Machine machine = machine_named("h100", 64);
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t tp = 1u << rng.below(4);
    const ParallelPlan plan{.tp = tp,
                            .dp = 64 / tp,
                            .zero = static_cast<std::uint32_t>(rng.below(4)),
                            .micro_batch = 1u << rng.below(3),
                            .recompute = static_cast<Recompute>(rng.below(3))};
    const auto memory_in = [&](NumberFormat format) {
      job.precision = {.format = format};
      return training(job, machine).memory(plan);
    };
    const TrainingMemory half = memory_in(NumberFormat::kBf16);
    for (const NumberFormat wide : {NumberFormat::kFp32, NumberFormat::kTf32}) {
      const TrainingMemory full = memory_in(wide);
      EXPECT_DOUBLE_EQ(full.weights, 2 * half.weights);
      EXPECT_DOUBLE_EQ(full.activations, 2 * half.activations);
      EXPECT_DOUBLE_EQ(full.gathered, 2 * half.gathered);
      EXPECT_DOUBLE_EQ(full.gradients, (plan.zero >= 2 ? 2 : 1) * half.gradients);
      // Two 32-bit moments; 16-bit weights have a 32-bit copy beside them.
      EXPECT_DOUBLE_EQ(full.optimizer, half.optimizer * 8 / 12);
      EXPECT_GT(full.transient, half.transient);
    }
    EXPECT_LT(memory_in(NumberFormat::kFp8).activations, half.activations);
  }
}

TEST(TrainingStep, a_format_has_a_utilisation_of_its_own_peak) {
  TrainingJob job{
      .model = &model_named("llama-3.1-8b"), .sequence = Tokens{8192}, .global_batch = 64};
  const TrainingModel wide = training(job, machine_named("h100", 8));
  EXPECT_DOUBLE_EQ(wide.format_utilisation(1), wide.utilisation(1));
  job.precision = {.format = NumberFormat::kFp8, .scaling = Scaling::kTensor};
  const TrainingModel narrow = training(job, machine_named("h100", 8));
  EXPECT_DOUBLE_EQ(narrow.utilisation(1), wide.utilisation(1));
  EXPECT_NEAR(narrow.format_utilisation(1) / narrow.utilisation(1), 0.5, 0.01);
  // A100 has no FP8: it runs in 16 bits.
  const TrainingModel old = training(job, machine_named("a100-80g", 8));
  EXPECT_DOUBLE_EQ(old.format_utilisation(1), old.utilisation(1));
}

TEST(TrainingStep, waits_for_data_that_arrive_later_than_the_step_before_ends) {
  TrainingJob job{
      .model = &model_named("llama-3.1-8b"), .sequence = Tokens{8192}, .global_batch = 64};
  const Machine machine = machine_named("h100", 8);
  const ParallelPlan plan{.dp = 8, .zero = 1};
  const StepCost fed = training(job, machine).evaluate(plan);
  EXPECT_EQ(fed.terms[Term::kInput], 0);
  job.input_seconds = fed.seconds + 3;
  const StepCost hungry = training(job, machine).evaluate(plan);
  EXPECT_NEAR(hungry.terms[Term::kInput], 3, 1e-9);
  EXPECT_NEAR(hungry.seconds, job.input_seconds, 1e-9);
}

TEST(TrainingStep, refuses_impossible_splits_and_names_the_rule) {
  const TrainingJob job{
      .model = &model_named("llama-3.1-8b"), .sequence = Tokens{8192}, .global_batch = 100};
  const TrainingModel model = training(job, machine_named("h100", 64));
  const auto reason = [&](const ParallelPlan& plan) {
    const Status status = model.check(plan);
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(reason({.tp = 8, .dp = 4}).find("32 ranks, expected 64"), std::string::npos);
  EXPECT_NE(reason({.tp = 64}).find("no multiple of tp 64"), std::string::npos);
  EXPECT_NE(reason({.pp = 64}).find("fewer than pp 64"), std::string::npos);
  EXPECT_NE(reason({.tp = 8, .dp = 8}).find("global batch 100"), std::string::npos);
  EXPECT_NE(reason({.dp = 64, .ep = 8}).find("no experts"), std::string::npos);
  EXPECT_NE(reason({.vpp = 2, .dp = 64}).find("vpp 2 needs pp"), std::string::npos);
}

TEST(TrainingStep, an_image_models_sample_has_its_own_tokens_whatever_sequence_is_asked_for) {
  TrainingJob job{.model = &model_named("vit-h-14"), .sequence = Tokens{64}, .global_batch = 4096};
  const TrainingModel short_one = training(job, machine_named("h100", 8));
  job.sequence = Tokens{4096};
  const TrainingModel long_one = training(job, machine_named("h100", 8));
  const ParallelPlan plan{.dp = 8, .zero = 1, .micro_batch = 32};
  const double seconds = short_one.evaluate(plan).seconds;
  EXPECT_EQ(seconds, long_one.evaluate(plan).seconds);
  EXPECT_GT(short_one.utilisation(seconds), 0.1);
  EXPECT_LT(short_one.utilisation(seconds), 0.9);
}

TEST(TrainingStep, a_model_without_layers_is_refused) {
  const TrainingJob job{.model = &model_named("dlrm-dcnv2")};
  EXPECT_FALSE(TrainingModel::make(job, machine_named("h100", 8), builtin_constants()));
}

}  // namespace
}  // namespace orrery

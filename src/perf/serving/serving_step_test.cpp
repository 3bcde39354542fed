// perf/serving/serving_step_test.cpp - one pass: what it reads, and how layouts change it.
#include "perf/serving/serving_step.hpp"

#include <gtest/gtest.h>

#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

StepTime step(const ServingJob& job, const StepLoad& load) {
  return ServingStep(job, constants_for(job)).time(load);
}

TEST(ServingStep, ExpertsTouchedRunFromTheActiveOnesToAll) {
  const ServingExperts experts{.count = 128, .active = 8};
  EXPECT_NEAR(experts_touched(experts, 1), 8, 1e-9);
  EXPECT_NEAR(experts_touched(experts, 16), 128 * (1 - std::pow(120.0 / 128, 16)), 1e-9);
  EXPECT_NEAR(experts_touched(experts, 5000), 128, 1e-6);
}

TEST(ServingStep, DecodeOfOneSequenceReadsTheWeightsOnce) {
  const ServingJob job = serving_job("H100", small_dense());
  const StepTime time = step(job, {.sequences = 1, .context = 1000});
  const double weights = 2 * (7.5e9 - 0.5e9);
  const double roofline = weights / part("H100").memory_bandwidth.value();
  EXPECT_GT(time.total(), roofline);
  EXPECT_LT(time.total(), 2.5 * roofline);
  EXPECT_EQ(time.collective, 0);
  EXPECT_EQ(time.experts, 0);
}

TEST(ServingStep, TheTermsAddUp) {
  ServingJob job = serving_job("H100", small_experts());
  job.plan.tp = 4;
  const StepTime time =
      step(job, {.sequences = 16, .context = 500, .prompts = 256, .piece = 256, .seen = 128});
  EXPECT_DOUBLE_EQ(time.total(), time.matmul + time.experts + time.attention + time.elementwise +
                                     time.collective + time.host);
  EXPECT_GT(time.experts, 0);
  EXPECT_GT(time.collective, 0);
}

TEST(ServingStep, ALongerContextCostsOnlyAttention) {
  const ServingJob job = serving_job("B200", small_dense());
  const StepTime near = step(job, {.sequences = 64, .context = 1000});
  const StepTime far = step(job, {.sequences = 64, .context = 30000});
  EXPECT_GT(far.attention, 5 * near.attention);
  EXPECT_DOUBLE_EQ(far.matmul, near.matmul);
}

TEST(ServingStep, AWindowBoundsWhatDecodeReads) {
  Transformer model = small_dense();
  model.window = 128;
  for (Layer& layer : model.layers) layer.mixer = Mixer::kSlidingAttention;
  const ServingJob job = serving_job("H100", model);
  EXPECT_DOUBLE_EQ(step(job, {.sequences = 64, .context = 1000}).attention,
                   step(job, {.sequences = 64, .context = 30000}).attention);
}

TEST(ServingStep, DealingExpertsToGroupsMovesTokensInsteadOfSums) {
  ServingJob job = serving_job("B200", small_experts());
  job.plan = {.tp = 1, .pp = 1, .ep = 4, .attention_dp = 4};
  const StepLoad load{.sequences = 256, .context = 500};
  const StepTime dealt = step(job, load);
  EXPECT_GT(dealt.collective, 0);
  job.plan = {};
  EXPECT_LT(dealt.experts, step(job, load).experts);
}

TEST(ServingStep, StagesInOtherDomainsWaitForTheNetwork) {
  ServingJob job = serving_job("H100", small_dense());
  job.plan = {.tp = 8, .pp = 4};
  ServingConstants constants = constants_for(job);
  const StepLoad load{.sequences = 64, .context = 500};
  const StepTime near = ServingStep(job, constants).time(load);
  const Result<Machine> machine = machine_of(
      builtin_facts(), {.accelerator = job.accelerator, .accelerators = 256, .scale_out = true});
  ASSERT_TRUE(machine);
  constants.network.between = network_of(*machine, builtin_constants());
  double before = near.collective;
  for (const double domain : {32.0, 16.0, 8.0}) {  // no, one and three stages' results leave it
    constants.network.domain = domain;
    const StepTime far = ServingStep(job, constants).time(load);
    EXPECT_DOUBLE_EQ(far.total() - far.collective, near.total() - near.collective);
    if (domain == 32) EXPECT_EQ(far.collective, before);
    if (domain < 32) EXPECT_GT(far.collective, before);
    before = far.collective;
  }
}

}  // namespace
}  // namespace orrery

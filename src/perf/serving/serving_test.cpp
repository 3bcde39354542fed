// perf/serving/serving_test.cpp - throughput and latency obey their own laws, whatever the
// constants.
#include "perf/serving/serving.hpp"

#include <gtest/gtest.h>

#include "perf/serving/serving_apart.hpp"
#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

TEST(Serving, RequestsInFlightAreThroughputTimesTimeInTheSystem) {
  for (const double concurrency : {1.0, 8.0, 64.0, 256.0}) {
    ServingJob job = serving_job("H100", small_dense());
    job.load.concurrency = concurrency;
    const ServingPrediction p = predict(job);
    EXPECT_NEAR(p.requests * p.e2e.value(), concurrency, 1e-6 * concurrency);
    EXPECT_DOUBLE_EQ(p.output_tokens.value(), p.requests * job.load.output);
    EXPECT_DOUBLE_EQ(p.tokens_total.value(), p.requests * (job.load.input + job.load.output));
  }
}

TEST(Serving, MoreConcurrencyGivesMoreThroughputAndSlowerTokens) {
  ServingJob job = serving_job("B200", small_dense());
  ServingPrediction before = predict(job);
  for (const double concurrency : {64.0, 128.0, 256.0, 512.0}) {
    job.load.concurrency = concurrency;
    const ServingPrediction now = predict(job);
    EXPECT_GT(now.output_tokens, before.output_tokens);
    EXPECT_GT(now.tpot, before.tpot);
    before = now;
  }
}

TEST(Serving, ThroughputSaturatesAtTheOfferedRateOrAtCapacity) {
  ServingJob job = serving_job("H100", small_dense());
  job.load.concurrency = std::nullopt;
  const double capacity = predict(job).requests;
  job.load.rate = capacity / 10;
  const ServingPrediction idle = predict(job);
  EXPECT_DOUBLE_EQ(idle.requests, capacity / 10);
  job.load.rate = 10 * capacity;
  const ServingPrediction busy = predict(job);
  EXPECT_NEAR(busy.requests, capacity, 1e-9 * capacity);
  EXPECT_GT(busy.tpot, idle.tpot);
}

TEST(Serving, NoLayoutOrLoadBeatsTheLossFreeRoofline) {
  for (const char* name : {"A100", "H100", "B200", "MI300X", "L40S"}) {
    for (const double concurrency : {1.0, 32.0, 1024.0}) {
      ServingJob job = serving_job(name, small_dense());
      job.load.concurrency = concurrency;
      const ServingPrediction p = predict(job);
      const double rate = part(name).rate(NumberFormat::kBf16)->value();
      EXPECT_LT(p.tokens_total.value() * 2 * 7e9, rate) << name;
      const double weights = 2 * 7e9 / part(name).memory_bandwidth.value();
      EXPECT_GT(p.tpot.value(), weights) << name;
    }
  }
}

TEST(Serving, InstancesMultiplyThroughputAndKeepLatency) {
  ServingJob job = serving_job("H100", small_dense());
  const ServingPrediction one = predict(job);
  job.plan.replicas = 8;
  const ServingPrediction eight = predict(job);
  EXPECT_DOUBLE_EQ(eight.output_tokens.value(), 8 * one.output_tokens.value());
  EXPECT_EQ(eight.tpot, one.tpot);
}

TEST(Serving, AStaticBatchReadsAllItsPromptsFirst) {
  ServingJob job = serving_job("H100", small_dense());
  job.load.batching = Batching::kStatic;
  job.load.concurrency = std::nullopt;
  job.load.batch_max = 32;
  const ServingPrediction p = predict(job);
  EXPECT_EQ(p.batch, 32);
  EXPECT_GT(p.ttft.value(), 32 * 1000 * 2 * 7e9 / part("H100").rate(NumberFormat::kBf16)->value());
  EXPECT_NEAR(p.e2e.value(), p.ttft.value() + 499 * p.tpot.value(), 0.01 * p.e2e.value());
}

TEST(Serving, AJobThatDoesNotFitSaysSo) {
  ServingJob job = serving_job("L40S", small_dense(200));
  EXPECT_FALSE(predict(job).fits);
}

TEST(Serving, MemoryLimitsTheBatchWhenNothingElseDoes) {
  ServingJob job = serving_job("L40S", small_dense());
  job.load = {.input = 16000, .output = 1000};
  const ServingPrediction p = predict(job);
  EXPECT_TRUE(p.fits);
  EXPECT_DOUBLE_EQ(p.batch, p.memory.sequences);
}

TEST(ServingApart, AnAnswersInstanceIsNeverSlowerThanAJointOne) {
  for (const Transformer& model : {small_dense(), small_experts()}) {
    for (const double tp : {1.0, 4.0}) {
      ServingJob job = serving_job("H100", model);
      job.plan.tp = tp;
      for (double batch = 1; batch <= 256; batch *= 4) {
        job.load.concurrency = batch;
        const ServingPrediction joint = predict(job);
        const AnswerInstance apart = answer_instance(job, constants_for(job), joint.batch);
        EXPECT_LE(apart.tpot.value(), joint.tpot.value() * (1 + 1e-12)) << batch;
        EXPECT_GE(apart.requests, joint.requests) << batch;
        EXPECT_DOUBLE_EQ(apart.breakdown.total(), apart.tpot.value());
      }
    }
  }
}

TEST(ServingApart, NoJointInstanceReadsMorePromptsThanOneThatOnlyReads) {
  for (const double input : {100.0, 3000.0, 40000.0}) {
    ServingJob job = serving_job("H100", small_dense());
    job.load.input = input;
    const PromptInstance apart = prompt_instance(job, constants_for(job));
    for (double batch = 1; batch <= 64; batch *= 4) {
      job.load.concurrency = batch;
      EXPECT_LE(predict(job).requests, apart.requests_max * (1 + 1e-9)) << input;
    }
    EXPECT_GE(apart.prompt.value(), apart.breakdown.total() * (1 - 1e-9)) << input;
  }
}

TEST(ServingApart, EachDeviceSendsItsPartOfTheCache) {
  ServingJob one = serving_job("H100", small_dense());
  const Result<Machine> machine = machine_of(
      builtin_facts(), {.accelerator = one.accelerator, .accelerators = 64, .scale_out = true});
  ASSERT_TRUE(machine);
  const ServingNetwork network{.domain = 8, .between = network_of(*machine, builtin_constants())};
  ServingJob four = one;
  four.plan.tp = 4;
  const double alone = cache_transfer(one, one, network).value();
  const double bytes = 32 * 2 * 8 * 128 * 2 * 1000.0;  // layers, keys and values, heads, width
  EXPECT_GT(alone, bytes / 50e9);
  EXPECT_LT(alone, 2 * bytes / 50e9);
  EXPECT_LT(cache_transfer(four, four, network).value(), alone / 3);
  EXPECT_EQ(cache_transfer(four, one, network).value(), alone);  // the fewer devices take longer
}

}  // namespace
}  // namespace orrery

// perf/serving/serving_estimate_test.cpp - published rows as jobs.
#include "perf/serving/serving_estimate.hpp"

#include <gtest/gtest.h>

#include "perf/runs/run_file_test.hpp"
#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

std::string row(const std::string& changes) {
  return R"({"id": "r", "model": "Llama-3.1-70B", "accel": "H100", "n": 8, "engine": "vLLM",
             "engine_version": "0.12", "input_tokens": 1000, "output_tokens": 500,
             "scenario": "server", )" +
         changes + "}";
}

const char* const kTp8 =
    R"("par": {"tp": 8, "pp": 1, "ep": 1, "dp": 1}, "concurrency": 64,
       "precision": {"weights": "fp8", "kv": null, "activations": "fp8"})";

ServingEstimate estimate(const std::string& text) {
  const ServingRun run = read_serving(text);
  Result<ServingEstimate> result = estimate_serving(run, builtin_constants());
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? *result : ServingEstimate{};
}

TEST(ServingEstimate, APublishedRowIsMetWithinAFifth) {
  // TensorRT-LLM 0.17 performance overview, Llama-3.1 8B FP8 on one H100: 15,244.78 tokens/s.
  const ServingEstimate found = estimate(
      R"({"id": "r", "model": "Llama-3.1-8B", "accel": "H100", "n": 1, "engine": "TensorRT-LLM",
          "engine_version": "0.17", "par": {"tp": 1, "pp": 1, "ep": 1, "dp": 1},
          "precision": {"weights": "fp8", "kv": "fp8", "activations": "fp8"},
          "input_tokens": 1000, "output_tokens": 1000, "scenario": "offline"})");
  EXPECT_NEAR(found.prediction.output_tokens.value() / 15244.78, 1, 0.2);
}

TEST(ServingEstimate, TheIntervalHoldsThePrediction) {
  const ServingEstimate found = estimate(row(kTp8));
  EXPECT_LT(found.throughput.low, 1);
  EXPECT_GT(found.throughput.high, 1);
  EXPECT_DOUBLE_EQ(found.latency.low, 1 / found.throughput.high);
  EXPECT_TRUE(found.prediction.fits);
}

TEST(ServingEstimate, FurtherCopiesOfTheLayoutHaveTheirOwnRequests) {
  const std::string two = R"("par": {"tp": 4, "pp": 1, "ep": 1, "dp": 1}, "concurrency": 64,
      "precision": {"weights": "fp8", "kv": null, "activations": "fp8"})";
  const ServingEstimate found = estimate(row(two));
  EXPECT_EQ(found.job.plan.replicas, 2);
  EXPECT_EQ(found.job.load.concurrency, 64);
  const std::string shared = R"("par": {"tp": 4, "pp": 1, "ep": 1, "dp": 2}, "concurrency": 64,
      "precision": {"weights": "fp8", "kv": null, "activations": "fp8"})";
  EXPECT_EQ(estimate(row(shared)).job.load.concurrency, 32);
}

TEST(ServingEstimate, ARowWithoutALayoutGetsOneThatHoldsTheModel) {
  const ServingEstimate found =
      estimate(row(R"("precision": {"weights": "bf16", "kv": null, "activations": "bf16"})"));
  EXPECT_GE(found.job.plan.tp, 2);
  EXPECT_EQ(found.job.plan.tp * found.job.plan.replicas, 8);
  EXPECT_TRUE(found.prediction.fits);
  EXPECT_FALSE(found.warnings.empty());
  EXPECT_LT(found.throughput.low, estimate(row(kTp8)).throughput.low);
}

TEST(ServingEstimate, CoresOfADeviceAreRanksOfALayout) {
  const ServingEstimate found = estimate(
      R"({"id": "r", "model": "Llama-3-8B", "accel": "inf2", "n": 12,
          "engine": "Transformers NeuronX",
          "engine_version": "2.18", "par": {"tp": 24, "pp": 1, "ep": 1, "dp": 1}, "max_batch": 1,
          "precision": {"weights": "bf16", "kv": "bf16", "activations": "bf16"},
          "input_tokens": 128, "output_tokens": 3968, "scenario": "single"})");
  EXPECT_EQ(found.job.plan.tp, 12);
  EXPECT_EQ(found.job.plan.cores, 2);
  EXPECT_EQ(found.job.load.batching, Batching::kStatic);
}

TEST(ServingEstimate, ExpertsDealtWiderThanAttentionMakeItsGroups) {
  const ServingEstimate found = estimate(
      R"({"id": "r", "model": "DeepSeek-R1", "accel": "B200", "n": 8, "engine": "TensorRT-LLM",
          "engine_version": "1.2", "par": {"tp": 1, "pp": 1, "ep": 8, "dp": 8},
          "precision": {"weights": "fp4", "kv": "fp8", "activations": "fp4"},
          "input_tokens": 1000, "output_tokens": 1000, "scenario": "offline"})");
  EXPECT_EQ(found.job.plan.attention_dp, 8);
  EXPECT_EQ(found.job.plan.replicas, 1);
  EXPECT_EQ(found.job.formats.mixers, NumberFormat::kFp8);
}

TEST(ServingEstimate, APowerLimitSlowsThePrompts) {
  ServingRun run = read_serving(row(kTp8));
  const double free = estimate_serving(run, builtin_constants())->prediction.ttft.value();
  run.power_limit = Watts{400};
  EXPECT_GT(estimate_serving(run, builtin_constants())->prediction.ttft.value(), 1.1 * free);
}

TEST(ServingEstimate, AnAnswerWithoutLengthIsRefused) {
  ServingRun run = read_serving(row(kTp8));
  run.output_tokens = std::nullopt;
  EXPECT_FALSE(estimate_serving(run, builtin_constants()));
}

}  // namespace
}  // namespace orrery

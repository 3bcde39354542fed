#include "planner/serving/serving_quote.hpp"

#include "planner/serving/serving_test.hpp"

namespace orrery {
namespace {

struct Loaded {
  ServingJob job;
  ServingConstants constants;
  ServingPrediction prediction;

  explicit Loaded(double concurrency, std::string_view type = "h100")
      : job(serving_job_on(type, "llama-3.1-8b")), constants(constants_on(job)) {
    job.load.concurrency = concurrency;
    prediction = predict_serving(job, constants);
  }
  [[nodiscard]] ServingWork work(double instances = 1) const {
    return {job, constants, prediction, instances};
  }
};

Economics economics(std::string_view type, const EconomicsOptions& options = {}) {
  const NodeType& node = builtin_facts().default_node(accelerator_named(type));
  Result<Economics> found = running_costs_of(serving_facts(), node, options);
  EXPECT_TRUE(found);
  return *std::move(found);
}

TEST(ServingQuote, ARequestTakesTwoOperationsAParameterAndToken) {
  ServingJob job = serving_job_on("h100", "llama-3.1-8b");
  job.load.input = 100;
  job.load.output = 100;
  const double weights = 8.03e9 - 128256 * 4096.0;  // without the table of embeddings
  EXPECT_NEAR(request_flops(job), 2 * weights * 200, 0.08 * 2 * weights * 200);
}

TEST(ServingQuote, SharesOfTheTimeAddUpToOne) {
  for (const double concurrency : {1.0, 16.0, 256.0}) {
    const Loaded loaded(concurrency);
    const PowerLoad load = serving_power_load(loaded.work());
    EXPECT_NEAR(load.compute_share + load.memory_share + load.network_share + load.idle_share, 1,
                1e-9);
    EXPECT_GE(load.idle_share, 0);
  }
}

TEST(ServingQuote, AFullerBatchComputesMoreAndReadsLess) {
  const PowerLoad alone = serving_power_load(Loaded(1).work());
  const PowerLoad full = serving_power_load(Loaded(256).work());
  EXPECT_GT(full.compute_share, 2 * alone.compute_share);
  EXPECT_GT(alone.memory_share, 0.5);
}

TEST(ServingQuote, DollarsWattsAndRacksFollowFromTheFigures) {
  const Loaded loaded(64);
  const Economics costs = economics("h100");
  const auto rack = rack_size(builtin_facts(), node_type("dgx-h100"));
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->accelerators, 32);
  const ServingQuote quote = quote_of(costs, rack, loaded.work(3));
  const double tokens = 3 * loaded.prediction.output_tokens.value();
  ASSERT_TRUE(quote.price && quote.power);
  EXPECT_NEAR(quote.price->value(), 3 * costs.price.value->hire.value(), 1e-12);
  EXPECT_NEAR(*quote.dollars_per_million, quote.price->value() / tokens * 1e6, 1e-9);
  EXPECT_NEAR(*quote.dollars_per_million_total * 3, *quote.dollars_per_million, 1e-6);
  EXPECT_NEAR(*quote.tokens_per_joule, tokens / quote.power->value(), 1e-9);
  EXPECT_NEAR(*quote.tokens_per_rack, tokens / 3 * 32, 1e-6);
  const double each = quote.power->value() / 3;
  EXPECT_GT(each, 200);
  EXPECT_LT(each, 10200.0 / 8);
}

TEST(ServingQuote, WhatNobodyPublishedIsLeftOut) {
  const Loaded loaded(16, "tpu-v5e");
  const ServingQuote quote = quote_of(economics("tpu-v5e"), std::nullopt, loaded.work());
  EXPECT_TRUE(quote.dollars_per_million);
  EXPECT_FALSE(quote.power);
  EXPECT_FALSE(quote.tokens_per_joule);
  EXPECT_FALSE(quote.tokens_per_rack);
}

TEST(ServingQuote, AnOwnedMachinePaysItsElectricityBesideTheHire) {
  const Loaded loaded(64);
  const Economics costs = economics("h100", {.basis = PriceBasis::kOwned});
  const ServingQuote quote = quote_of(costs, std::nullopt, loaded.work());
  ASSERT_TRUE(quote.price && quote.power);
  const Site& site = *costs.site.value;
  EXPECT_NEAR((*quote.price - costs.price.value->hire).value(),
              (*quote.power * site.pue * site.electricity).value(), 1e-12);
}

}  // namespace
}  // namespace orrery

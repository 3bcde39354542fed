#include "serving/engine_step_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

/// Steps as an engine under load has them: some decode alone, some take a part of a prompt along.
std::vector<EngineStepSample> steps_of(const EngineStepCost& cost, double noise,
                                       std::uint64_t seed) {
  Rng rng(seed);
  std::vector<EngineStepSample> samples;
  samples.reserve(2000);
  for (int i = 0; i < 2000; ++i) {
    EngineStepWork work;
    work.sequences = std::floor(rng.uniform() * 33);
    work.context = std::floor(work.sequences * (50 + rng.uniform() * 2000));
    if (work.sequences == 0 || rng.uniform() < 0.3) {
      work.prompt = 1 + std::floor(rng.uniform() * 255);
      work.prompt_context = work.prompt * std::floor(rng.uniform() * 3000 + work.prompt / 2);
    }
    const double factor = 1 + noise * (2 * rng.uniform() - 1);
    samples.push_back({.work = work, .seconds = seconds_of(cost, work) * factor});
  }
  return samples;
}

constexpr EngineStepCost kCost = {.step_s = 4e-3,
                                  .sequence_s = 2e-4,
                                  .context_token_s = 3e-7,
                                  .prompt_token_s = 1.5e-4,
                                  .prompt_pair_s = 2e-8};

TEST(EngineStepFit, FindsTheTermsThatMadeTheSteps) {
  const auto fit = fit_engine_step_cost(steps_of(kCost, 0, 1));
  ASSERT_TRUE(fit) << fit.error().text();
  EXPECT_NEAR(fit->cost.step_s / kCost.step_s, 1, 1e-6);
  EXPECT_NEAR(fit->cost.sequence_s / kCost.sequence_s, 1, 1e-6);
  EXPECT_NEAR(fit->cost.context_token_s / kCost.context_token_s, 1, 1e-6);
  EXPECT_NEAR(fit->cost.prompt_token_s / kCost.prompt_token_s, 1, 1e-6);
  EXPECT_NEAR(fit->cost.prompt_pair_s / kCost.prompt_pair_s, 1, 1e-6);
  EXPECT_LT(fit->error, 1e-6);
}

TEST(EngineStepFit, StandsNoiseAndStalls) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<EngineStepSample> samples = steps_of(kCost, 0.2, seed);
    for (std::size_t i = 0; i < samples.size(); i += 97) samples[i].seconds *= 200;
    const auto fit = fit_engine_step_cost(samples);
    ASSERT_TRUE(fit) << fit.error().text();
    EXPECT_LT(fit->samples, samples.size());
    EXPECT_NEAR(fit->cost.step_s / kCost.step_s, 1, 0.1);
    EXPECT_NEAR(fit->cost.prompt_token_s / kCost.prompt_token_s, 1, 0.15);
    EXPECT_NEAR(fit->error, 0.1, 0.03);
  }
}

TEST(EngineStepFit, NoTermIsBelowZero) {
  // Steps that get shorter with the context would need a negative term.
  std::vector<EngineStepSample> samples;
  samples.reserve(50);
  for (int i = 0; i < 50; ++i) {
    samples.push_back({.work = {.sequences = 1, .context = 100.0 * i}, .seconds = 0.02 - 1e-4 * i});
  }
  const auto fit = fit_engine_step_cost(samples);
  ASSERT_TRUE(fit) << fit.error().text();
  for (const double term : {fit->cost.step_s, fit->cost.sequence_s, fit->cost.context_token_s,
                            fit->cost.prompt_token_s, fit->cost.prompt_pair_s}) {
    EXPECT_GE(term, 0);
  }
  EXPECT_EQ(fit->cost.context_token_s, 0);
  EXPECT_NEAR(fit->cost.step_s + fit->cost.sequence_s, 0.0175, 1e-3);
}

TEST(EngineStepFit, RefusesTooFewSteps) {
  EXPECT_FALSE(fit_engine_step_cost({}));
  std::vector<EngineStepSample> samples = steps_of(kCost, 0, 1);
  samples[3].seconds = 0;
  EXPECT_FALSE(fit_engine_step_cost(samples));
}

}  // namespace
}  // namespace orrery

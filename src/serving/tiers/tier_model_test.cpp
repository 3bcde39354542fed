#include "serving/tiers/tier_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

double chance(const TierFeatures& features) {
  return 1 / (1 + std::exp(-(1.5 * features[0] - 2 * features[1] + 0.3)));
}

std::vector<LabelledTask> drawn_tasks(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<LabelledTask> tasks(count);
  for (LabelledTask& task : tasks) {
    for (double& feature : task.features) feature = 4 * rng.uniform() - 2;
    task.features[7] = 3;  // a feature that says nothing
    task.good = rng.uniform() < chance(task.features);
  }
  return tasks;
}

TEST(TierModel, FindsTheProbabilitiesOfItsTasks) {
  const auto model = fit_tier_model(drawn_tasks(1, 20'000));
  ASSERT_TRUE(model);
  for (const LabelledTask& task : drawn_tasks(2, 200)) {
    EXPECT_NEAR(probability_of(*model, task.features), chance(task.features), 0.05);
  }
}

TEST(TierModel, StaysFiniteWhereTasksAreSeparable) {
  std::vector<LabelledTask> tasks(40);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].features[0] = static_cast<double>(i);
    tasks[i].good = i < 20;
  }
  const auto model = fit_tier_model(tasks);
  ASSERT_TRUE(model);
  EXPECT_GT(probability_of(*model, tasks[0].features), 0.95);
  EXPECT_LT(probability_of(*model, tasks[39].features), 0.05);
  for (LabelledTask& task : tasks) task.good = true;
  ASSERT_TRUE(fit_tier_model(tasks));
  EXPECT_GT(probability_of(*fit_tier_model(tasks), tasks[20].features), 0.9);
}

TEST(TierModel, RefusesTooFewTasksAndWhatIsNoNumber) {
  EXPECT_NE(fit_tier_model(drawn_tasks(1, 19)).error().message.find("19 labelled tasks"),
            std::string::npos);
  std::vector<LabelledTask> tasks = drawn_tasks(1, 30);
  tasks[4].features[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(fit_tier_model(tasks).error().message, "task 5: a feature is not finite");
}

TEST(TierThreshold, KeepsTheShareOfWorseAnswersOfOtherTasks) {
  const auto model = fit_tier_model(drawn_tasks(1, 20'000));
  ASSERT_TRUE(model);
  int broken = 0;
  for (std::uint64_t seed = 10; seed < 110; ++seed) {
    std::vector<ScoredTask> scored;
    scored.reserve(500);
    for (const LabelledTask& task : drawn_tasks(seed, 500)) {
      scored.push_back({probability_of(*model, task.features), task.good});
    }
    const auto threshold = tier_threshold(scored, 0.1, 0.05);
    ASSERT_TRUE(threshold) << "seed " << seed;
    double worse = 0;
    const std::vector<LabelledTask> others = drawn_tasks(seed + 1000, 2000);
    for (const LabelledTask& task : others) {
      if (probability_of(*model, task.features) >= *threshold) worse += 1 - chance(task.features);
    }
    broken += worse > 0.1 * static_cast<double>(others.size()) ? 1 : 0;
  }
  EXPECT_LE(broken, 9) << "5 of 100 are expected at most, drawn once";
}

TEST(TierThreshold, IsNoneWhereEvenTheSurestAreWorse) {
  const std::vector<ScoredTask> bad(200, {.probability = 0.99, .good = false});
  EXPECT_FALSE(tier_threshold(bad, 0.01, 0.05));
  EXPECT_FALSE(tier_threshold({}, 0.05, 0.05));
}

TEST(TierThreshold, CountsAllTasksOfTheSameProbability) {
  std::vector<ScoredTask> same(200, {.probability = 0.9, .good = true});
  EXPECT_EQ(tier_threshold(same, 0.05, 0.05), 0.9);
  for (std::size_t i = 0; i < 40; ++i) same[i].good = false;
  EXPECT_FALSE(tier_threshold(same, 0.05, 0.05)) << "a fifth of them is worse";
  const std::vector<ScoredTask> doubtful(200, {.probability = 0.4, .good = true});
  EXPECT_FALSE(tier_threshold(doubtful, 0.5, 0.05));
}

TEST(BinomialTail, IsExact) {
  EXPECT_NEAR(binomial_tail(1, 0, 0.25), 0.75, 1e-12);
  EXPECT_NEAR(binomial_tail(4, 1, 0.5), 5.0 / 16, 1e-12);
  EXPECT_NEAR(binomial_tail(10, 10, 0.3), 1, 1e-12);
}

}  // namespace
}  // namespace orrery

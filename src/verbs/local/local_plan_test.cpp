#include "verbs/local/local_plan.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

PlannedStep step_of(double seconds, std::uint32_t ranks, std::uint32_t tp = 1) {
  PlannedStep planned;
  planned.step.seconds = seconds;
  planned.step.layout.ranks = ranks;
  planned.step.layout.tp = tp;
  planned.step.layout.pp = 1;
  return planned;
}

TEST(BestStepTest, WholeReplicasArePreferredWithinTheErrorOfTheModel) {
  const std::vector<PlannedStep> near{step_of(1.0, 4, 4), step_of(1.1, 2), step_of(1.14, 4),
                                      step_of(1.16, 8)};
  EXPECT_EQ(best_of(near).step.layout.ranks, 4u);
  EXPECT_EQ(best_of(near).step.layout.tp, 1u);
  const std::vector<PlannedStep> far{step_of(1.0, 4, 4), step_of(1.2, 4)};
  EXPECT_EQ(best_of(far).step.layout.tp, 4u);
}

TEST(BestStepTest, TheBestIsNeverSlowerThanTheErrorOfTheModel) {
  constexpr std::uint64_t kSeed = 29;
  Rng rng(kSeed);
  for (int round = 0; round < 500; ++round) {
    std::vector<PlannedStep> steps;
    double seconds = 1;
    const std::uint64_t count = 1 + rng.below(8);
    steps.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto tp = static_cast<std::uint32_t>(1 + rng.below(2));
      steps.push_back(step_of(seconds, tp * static_cast<std::uint32_t>(1 + rng.below(4)), tp));
      seconds *= 1 + 0.01 * static_cast<double>(rng.below(10));
    }
    ASSERT_LE(best_of(steps).step.seconds, 1.15 * steps.front().step.seconds)
        << "seed " << kSeed << ", round " << round;
  }
}

TEST(ParallelPlanTest, SequencesAreCutWhereTensorsAre) {
  LocalLayout layout = step_of(1, 8, 2).step.layout;
  layout.micro = 3;
  const ParallelPlan plan = parallel_plan(layout);
  EXPECT_EQ(plan.dp, 4u);
  EXPECT_EQ(plan.micro_batch, 3u);
  EXPECT_EQ(plan.sequence_parallel, SequenceParallel::kOn);
  layout.tp = 1;
  EXPECT_EQ(parallel_plan(layout).sequence_parallel, SequenceParallel::kOff);
}

TEST(ReadLocalPlanTest, AFileThatIsMissingIsNamed) {
  const auto plan = read_local_plan({}, {.training = "/no/such/training.yaml", .calibration = ""});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text().find("/no/such/training.yaml"), std::string::npos)
      << plan.error().text();
}

}  // namespace
}  // namespace orrery

#include "serving/engine_step_cost.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(EngineStepCost, IsTheSumOfItsTerms) {
  const EngineStepCost cost{.step_s = 1,
                            .sequence_s = 0.5,
                            .context_token_s = 0.25,
                            .prompt_token_s = 0.125,
                            .prompt_pair_s = 0.0625};
  EXPECT_DOUBLE_EQ(seconds_of(cost, {}), 1);
  EXPECT_DOUBLE_EQ(
      seconds_of(cost, {.sequences = 2, .context = 8, .prompt = 16, .prompt_context = 32}), 8);
}

TEST(EngineStepCost, OfAPaceGivesBackWhatWasMeasured) {
  const ReplicaPace pace{.prefill_tokens_s = 2000, .step_s = 0.010, .step_full_s = 0.024};
  const EngineStepCost cost = engine_step_cost_of(pace, 8);
  EXPECT_NEAR(seconds_of(cost, {.sequences = 1}), pace.step_s, 1e-12);
  EXPECT_NEAR(seconds_of(cost, {.sequences = 8}), pace.step_full_s, 1e-12);
  EXPECT_NEAR(cost.prompt_token_s, 0.0005, 1e-12);
}

TEST(EngineStepCost, OfAPaceIsNeverNegative) {
  // A full step may be measured as the shorter one, on a machine with other load.
  const EngineStepCost faster =
      engine_step_cost_of({.prefill_tokens_s = 0, .step_s = 0.02, .step_full_s = 0.01}, 8);
  EXPECT_DOUBLE_EQ(faster.sequence_s, 0);
  EXPECT_DOUBLE_EQ(faster.step_s, 0.02);
  const EngineStepCost steep =
      engine_step_cost_of({.prefill_tokens_s = 0, .step_s = 0.01, .step_full_s = 1}, 2);
  EXPECT_GE(steep.step_s, 0);
  EXPECT_DOUBLE_EQ(steep.prompt_token_s, 0);
}

TEST(EngineStepCost, OfNothingMeasuredIsUnknown) {
  EXPECT_FALSE(is_known(engine_step_cost_of({}, 8)));
  EXPECT_TRUE(is_known(engine_step_cost_of({.prefill_tokens_s = 1}, 0)));
}

}  // namespace
}  // namespace orrery

#include "perf/pipeline.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.hpp"

namespace orrery {
namespace {

TEST(Pipeline, deals_the_layers_of_llama_405b_as_published) {
  const StageLayers stages = deal_layers(126, 16);
  EXPECT_EQ(stages.first, 7);
  EXPECT_EQ(stages.most, 8);
  EXPECT_EQ(stages.last, 7);
}

TEST(Pipeline, one_stage_holds_every_layer) {
  EXPECT_EQ(deal_layers(61, 1).most, 61);
  EXPECT_EQ(deal_layers(61, 1).last, 61);
}

TEST(Pipeline, the_last_stage_gives_the_layers_its_prediction_module_and_heads_take) {
  // DeepSeek-V3: 15 x 4 + 1; in 16 chunks on two stages the same, 32 + 29.
  const StageLayers stages = deal_layers(61, {.stages = 16, .chunks = 1, .tail = 7});
  EXPECT_EQ(stages.first, 4);
  EXPECT_EQ(stages.most, 4);
  EXPECT_EQ(stages.last, 1);
  const StageLayers chunked = deal_layers(61, {.stages = 2, .chunks = 8, .tail = 7});
  EXPECT_EQ(chunked.first, 32);
  EXPECT_EQ(chunked.last, 29);
}

TEST(Pipeline, two_layers_to_spare_come_off_both_ends_whatever_the_tail) {
  const StageLayers stages = deal_layers(126, {.stages = 16, .chunks = 1, .tail = 0.7});
  EXPECT_EQ(stages.first, 7);
  EXPECT_EQ(stages.most, 8);
  EXPECT_EQ(stages.last, 7);
}

TEST(Pipeline, no_stage_gives_more_than_it_has) {
  const StageLayers stages = deal_layers(10, {.stages = 8, .chunks = 1, .tail = 50});
  EXPECT_EQ(stages.most, 2);
  EXPECT_EQ(stages.last, 0);
  EXPECT_GE(stages.first, 0);
}

TEST(Pipeline, equal_stages_take_m_plus_p_minus_1_turns) {
  const std::vector<double> stages(4, 3.0);
  EXPECT_DOUBLE_EQ(pipeline_seconds(stages, 8, 1), (8 + 3) * 3.0);
  EXPECT_DOUBLE_EQ(pipeline_seconds(stages, 8, 3), (8 + 3 / 3.0) * 3.0);
}

TEST(Pipeline, the_closed_form_is_the_recurrence_of_the_schedule_for_equal_stages) {
  Rng rng = Rng::stream(7, "pipeline");
  for (int round = 0; round < 50; ++round) {
    const std::size_t stages = 1 + rng.below(8);
    const auto micro_batches = static_cast<std::uint32_t>(stages + rng.below(20));
    const std::vector<double> forward(stages, 1 + rng.uniform());
    const std::vector<double> backward(stages, 2 + rng.uniform());
    const std::vector<double> both(stages, forward[0] + backward[0]);
    EXPECT_NEAR(pipeline_seconds(both, micro_batches, 1),
                one_forward_one_backward_seconds(forward, backward, micro_batches), 1e-9)
        << stages << " stages, " << micro_batches << " micro-batches";
  }
}

TEST(Pipeline, with_one_slow_stage_the_closed_form_bounds_the_schedule_and_is_exact_for_the_last) {
  Rng rng = Rng::stream(11, "pipeline");
  for (int round = 0; round < 50; ++round) {
    const std::size_t stages = 2 + rng.below(7);
    std::vector<double> forward(stages, 1.0);
    std::vector<double> backward(stages, 2.0);
    const std::size_t slow = rng.below(stages);
    forward[slow] *= 1.5;
    backward[slow] *= 1.5;
    std::vector<double> both;
    for (std::size_t i = 0; i < stages; ++i) both.push_back(forward[i] + backward[i]);
    const double exact = one_forward_one_backward_seconds(forward, backward, 32);
    const double closed = pipeline_seconds(both, 32, 1);
    EXPECT_GE(closed, exact - 1e-9) << slow << " of " << stages;
    EXPECT_LE(closed, 1.15 * exact) << slow << " of " << stages;
    if (slow + 1 == stages) {
      EXPECT_NEAR(closed, exact, 1e-9) << stages;
    }
  }
}

}  // namespace
}  // namespace orrery

#include "perf/training/pipeline.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace orrery

// runtime/ranks/rank_memory_test.cpp - a rank's computed memory equals what it allocates.
#include "runtime/ranks/rank_memory.hpp"

#include <gtest/gtest.h>

#include "runtime/ranks/shard_gradient.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

double floats(Bytes bytes) { return bytes.value() / sizeof(float); }

TrainingSpec spec_of(const TrainingLayout& layout) {
  TrainingSpec spec;
  spec.model = shared_config(TransformerFamily::kLlama);
  spec.batch = {.sequences = 32, .shards = 4, .micro = 2};
  spec.layout = layout;
  spec.checkpoint.peer_every = 0;
  return spec;
}

TEST(RankMemory, OneRankHasAllOfIt) {
  const TrainingSpec spec = spec_of({});
  const RankMemory memory = rank_memory(spec, 1);
  const auto weights = static_cast<double>(ParameterLayout(spec.model).size());
  EXPECT_EQ(floats(memory.weights), weights);
  EXPECT_EQ(floats(memory.moments), 2 * weights);
  // Four shards need three gradients: the sum, the right half's, and the right quarter's.
  EXPECT_EQ(floats(memory.gradients), 3 * weights);
  const TrainableTransformer model(spec.model, spec.batch.micro);
  EXPECT_EQ(memory.activations.value(), static_cast<double>(model.activation_bytes()));
  EXPECT_EQ(memory.exchange.value(), 0);
  EXPECT_EQ(floats(rank_memory(spec, 4).gradients), weights);
}

TEST(RankMemory, EachWayToShareMakesARankSmaller) {
  const double alone = rank_memory(spec_of({}), 1).total().value();
  EXPECT_LT(rank_memory(spec_of({.tp = 2}), 1).total().value(), 0.75 * alone);
  EXPECT_LT(rank_memory(spec_of({.pp = 2}), 1).weights.value(),
            0.75 * rank_memory(spec_of({}), 1).weights.value());
  const RankMemory shared = rank_memory(spec_of({.zero = 1}), 4);
  EXPECT_EQ(shared.moments.value(), rank_memory(spec_of({}), 4).moments.value() / 4);
  TrainingSpec again = spec_of({});
  again.model.recompute = ActivationRecompute::kFull;
  EXPECT_LT(rank_memory(again, 1).activations.value(),
            0.6 * rank_memory(spec_of({}), 1).activations.value());
}

TEST(RankMemory, CopiesAreOfTwoRangesAtTwoTimes) {
  TrainingSpec spec = spec_of({.tp = 2});
  const double none = rank_memory(spec, 2).total().value();
  spec.checkpoint.peer_every = 1;
  const auto whole = static_cast<double>(ParameterLayout(spec.model).size());
  EXPECT_NEAR((rank_memory(spec, 2).total().value() - none) / sizeof(float), 12 * whole / 4, 4);
}

TEST(RankMemory, AnEarlierStageKeepsMoreMicroBatches) {
  TrainingSpec spec = spec_of({.pp = 4});
  const RankMemory deep = rank_memory(spec, 1);
  spec.batch.micro = 8;  // one micro-batch per shard
  const RankMemory one = rank_memory(spec, 1);
  // Four slots of two sequences keep what one slot of eight does, except for buffers outside the
  // slots.
  EXPECT_NEAR(deep.activations.value(), one.activations.value(), 0.4 * one.activations.value());
}

}  // namespace
}  // namespace orrery

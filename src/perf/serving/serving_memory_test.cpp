// perf/serving/serving_memory_test.cpp - weights, cache and the sequences that fit.
#include "perf/serving/serving_memory.hpp"

#include <gtest/gtest.h>

#include "perf/serving/serving_test.hpp"

namespace orrery {
namespace {

ServingMemory memory_of(const ServingJob& job) {
  return serving_memory(job, constants_for(job).engine);
}

TEST(ServingMemory, CacheOfATokenIsTwoVectorsAHeadAndLayer) {
  const ServingJob job = serving_job("H100", small_dense());
  EXPECT_DOUBLE_EQ(sequence_bytes(job, 1), 32 * 2 * 8 * 128 * 2.0);
  EXPECT_DOUBLE_EQ(sequence_bytes(job, 1000), 1000 * sequence_bytes(job, 1));
}

TEST(ServingMemory, HeadsAreDividedWholeAndCopiedBeyondTheirNumber) {
  ServingJob job = serving_job("H100", small_dense());
  const double one = sequence_bytes(job, 1);
  job.plan.tp = 8;
  EXPECT_DOUBLE_EQ(sequence_bytes(job, 1), one / 8);
  job.plan.tp = 16;
  EXPECT_DOUBLE_EQ(sequence_bytes(job, 1), one / 8);
  // 24 ranks of one head each, two to a device.
  job.plan.tp = 12;
  job.plan.cores = 2;
  EXPECT_DOUBLE_EQ(sequence_bytes(job, 1), one / 4);
}

TEST(ServingMemory, SeventyBillionParametersIn16BitsDoNotFitOneH100) {
  Transformer model = small_dense(80);
  model.hidden = 8192;
  model.ffn = 28672;
  model.attention = {.heads = 64, .kv_heads = 8, .head_dim = 128};
  model.full_attention = model.attention;
  ServingJob job = serving_job("H100", model);
  EXPECT_FALSE(memory_of(job).fits());
  job.plan.tp = 4;
  const ServingMemory four = memory_of(job);
  EXPECT_TRUE(four.fits());
  EXPECT_NEAR(four.weights, 70.6e9 * 2 / 4, 1e9);
  job.plan.tp = 8;
  EXPECT_GT(memory_of(job).sequences, four.sequences);
}

TEST(ServingMemory, NarrowerWeightsAndCacheMakeRoom) {
  ServingJob job = serving_job("H100", small_dense());
  const double wide = memory_of(job).sequences;
  job.formats.mixers = job.formats.weights = NumberFormat::kFp8;
  const double weights = memory_of(job).sequences;
  job.formats.kv = NumberFormat::kFp8;
  EXPECT_GT(weights, wide);
  EXPECT_NEAR(memory_of(job).sequences / weights, 2, 1e-9);
}

}  // namespace
}  // namespace orrery

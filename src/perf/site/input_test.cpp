// perf/site/input_test.cpp - a step waits for its data only as long as nothing hides the reading.
#include "perf/site/input.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

InputStall stall(const InputPath& path, const InputDemand& demand) {
  const Result<InputStall> found = input_stall(path, demand);
  EXPECT_TRUE(found) << found.error().text();
  return found.value_or(InputStall{});
}

const InputPath kCached{.storage = BytesPerSecond(1e9),
                        .wan = std::nullopt,
                        .cache = BytesPerSecond(10e9),
                        .cache_capacity = Bytes(3e12),
                        .data_set = Bytes(4e12),
                        .state = CacheState::kWarm};

TEST(Input, TextOfALargeBatchIsNothingToAnyStorage) {
  TrainingJob job;
  job.global_batch = 2048;
  job.sequence = Tokens(8192);
  EXPECT_DOUBLE_EQ(input_bytes(job).value(), 2048.0 * 8192 * 4);
  const InputStall text =
      stall({.storage = BytesPerSecond(90e9)}, {.bytes = input_bytes(job), .hidden = Seconds(4)});
  EXPECT_EQ(text.stall, Seconds(0));
  EXPECT_LT(text.reading, Seconds(0.001));
}

TEST(Input, WhatTheStepCannotHideIsTheStall) {
  const InputStall images =
      stall({.storage = BytesPerSecond(2e9)}, {.bytes = Bytes(3e9), .hidden = Seconds(1)});
  EXPECT_DOUBLE_EQ(images.reading.value(), 1.5);
  EXPECT_DOUBLE_EQ(images.stall.value(), 0.5);
  EXPECT_EQ(images.limit, InputLimit::kStorage);
}

TEST(Input, ADataSetBehindAWanComesAtTheWansRate) {
  const InputStall far = stall({.storage = BytesPerSecond(2e9), .wan = BytesPerSecond(0.5e9)},
                               {.bytes = Bytes(3e9), .hidden = Seconds(1)});
  EXPECT_DOUBLE_EQ(far.stall.value(), 5);
  EXPECT_EQ(far.limit, InputLimit::kWan);
}

TEST(Input, AWarmCacheDeliversItsPartBesideTheRest) {
  const InputDemand demand{.bytes = Bytes(8e9), .hidden = Seconds(1)};
  const InputStall warm = stall(kCached, demand);
  EXPECT_DOUBLE_EQ(warm.cached, 0.75);
  EXPECT_DOUBLE_EQ(warm.reading.value(), 2) << "a quarter from the storage, longer than the caches";
  InputPath cold = kCached;
  cold.state = CacheState::kCold;
  EXPECT_DOUBLE_EQ(stall(cold, demand).reading.value(), 8);
  InputPath whole = kCached;
  whole.cache_capacity = Bytes(5e12);
  EXPECT_EQ(stall(whole, demand).limit, InputLimit::kCache);
  EXPECT_DOUBLE_EQ(stall(whole, demand).reading.value(), 0.8);
}

TEST(Input, RefusesRatesOfNothing) {
  EXPECT_FALSE(input_stall({}, {.bytes = Bytes(1)}));
  EXPECT_FALSE(input_stall({.storage = BytesPerSecond(1)}, {.bytes = Bytes(-1)}));
  EXPECT_FALSE(input_stall({.storage = BytesPerSecond(NAN)}, {.bytes = Bytes(1)}));
  InputPath no_data = kCached;
  no_data.data_set = Bytes(0);
  EXPECT_FALSE(input_stall(no_data, {.bytes = Bytes(1)}));
}

TEST(Input, FasterSourcesNeverStallLongerAndAStallNeverExceedsTheReading) {
  Rng rng(61);
  for (int i = 0; i < 2000; ++i) {
    InputPath path{.storage = BytesPerSecond(1e8 + 1e10 * rng.uniform()),
                   .wan = BytesPerSecond(1e8 + 1e10 * rng.uniform()),
                   .cache = BytesPerSecond(1e9 + 1e11 * rng.uniform()),
                   .cache_capacity = Bytes(2e12 * rng.uniform()),
                   .data_set = Bytes(1e11 + 1e12 * rng.uniform()),
                   .state = CacheState::kWarm};
    const InputDemand demand{.bytes = Bytes(1e10 * rng.uniform()),
                             .hidden = Seconds(2 * rng.uniform())};
    const InputStall here = stall(path, demand);
    EXPECT_LE(here.stall, here.reading);
    EXPECT_GE(here.stall, Seconds(0));
    path.storage = path.storage * 1.1;
    path.wan = *path.wan * 1.1;
    path.cache = *path.cache * 1.1;
    EXPECT_LE(stall(path, demand).stall, here.stall);
  }
}

}  // namespace
}  // namespace orrery

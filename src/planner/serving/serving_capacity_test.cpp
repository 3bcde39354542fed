#include "planner/serving/serving_capacity.hpp"

#include <cmath>

#include "planner/serving/serving_test.hpp"

namespace orrery {
namespace {

TEST(ServingCapacity, WithoutLimitsMemoryOrTheSchedulerEndsTheBatch) {
  const ServingJob job = serving_job_on("h100", "llama-3.1-8b");
  const ServingConstants constants = constants_on(job);
  const CapacityAnswer answer = serving_capacity(job, constants, {});
  ASSERT_TRUE(answer.capacity);
  const double room =
      std::min(std::floor(answer.least.memory.sequences), constants.engine.sequences_max);
  EXPECT_LE(answer.capacity->concurrency, room);
  if (answer.capacity->bound != ServingBound::kThroughput) {
    EXPECT_EQ(answer.capacity->concurrency, room);
  }
  EXPECT_GT(answer.capacity->prediction.requests, answer.least.requests);
}

TEST(ServingCapacity, OneMoreRequestThanTheCapacityBreaksTheLimit) {
  ServingJob job = serving_job_on("h100", "llama-3.1-8b");
  const ServingConstants constants = constants_on(job);
  for (const double limit : {0.012, 0.015, 0.02, 0.03}) {
    const LatencyLimits limits{.ttft = {}, .tpot = Seconds(limit)};
    const CapacityAnswer answer = serving_capacity(job, constants, limits);
    ASSERT_TRUE(answer.capacity) << limit;
    EXPECT_LE(answer.capacity->prediction.tpot.value(), limit);
    ASSERT_EQ(answer.capacity->bound, ServingBound::kTokenTime);
    job.load.concurrency = answer.capacity->concurrency + 1;
    EXPECT_GT(predict_serving(job, constants).tpot.value(), limit);
  }
}

TEST(ServingCapacity, LooserLimitsNeverServeFewerRequests) {
  for (const std::string_view type : {"h100", "mi300x", "l4", "tpu-v6e"}) {
    const ServingJob job = serving_job_on(type, "llama-3.1-8b");
    const ServingConstants constants = constants_on(job);
    double before = 0;
    for (double limit = 0.005; limit < 2; limit *= 1.5) {
      const LatencyLimits limits{.ttft = Seconds(10 * limit), .tpot = Seconds(limit)};
      const CapacityAnswer answer = serving_capacity(job, constants, limits);
      const double requests = answer.capacity ? answer.capacity->prediction.requests : 0;
      EXPECT_GE(requests, before * (1 - 1e-9)) << type << " at " << limit;
      before = requests;
    }
    EXPECT_GT(before, 0) << type;
  }
}

TEST(ServingCapacity, ThereIsNoneWhereTheModelDoesNotFit) {
  const ServingJob job = serving_job_on("l4", "llama-3.1-70b");
  const CapacityAnswer answer = serving_capacity(job, constants_on(job), {});
  EXPECT_FALSE(answer.capacity);
  EXPECT_FALSE(answer.least.fits);
}

TEST(ServingCapacity, ThereIsNoneWhereTheLeastLoadBreaksALimit) {
  const ServingJob job = serving_job_on("h100", "llama-3.1-8b");
  const LatencyLimits limits{.ttft = Seconds(1e-6), .tpot = {}};
  const CapacityAnswer answer = serving_capacity(job, constants_on(job), limits);
  EXPECT_FALSE(answer.capacity);
  EXPECT_TRUE(answer.least.fits);
}

TEST(ServingCapacity, APartWithoutRatesHasNoFinitePrediction) {
  Accelerator bare = accelerator_named("h100");
  bare.rates = {};
  ServingJob job = serving_job_on("h100", "llama-3.1-8b");
  const ServingConstants constants = constants_on(job);
  job.accelerator = &bare;
  const CapacityAnswer answer = serving_capacity(job, constants, {});
  EXPECT_FALSE(answer.capacity);
  EXPECT_FALSE(is_finite(answer.least));
}

}  // namespace
}  // namespace orrery

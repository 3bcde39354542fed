// perf/training/goodput_test.cpp - published runs, the closed forms against each other, and an
// optimum that no other interval beats.
#include "perf/training/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/numbers/rng.hpp"
#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Seconds mean_time(std::string_view profile, double nodes) {
  const FailureProfile* row = builtin_facts().find<FailureProfile>(profile);
  EXPECT_NE(row, nullptr) << profile;
  if (row == nullptr) return Seconds(1);
  const Result<Seconds> time = mean_time_to_failure(*row, nodes);
  EXPECT_TRUE(time) << time.error().text();
  return time.value_or(Seconds(1));
}

Seconds restart(double accelerators, RestartKind kind = RestartKind::kCold) {
  const Result<Seconds> time =
      restart_time(builtin_facts(), builtin_constants(), accelerators, kind);
  EXPECT_TRUE(time) << time.error().text();
  return time.value_or(Seconds(0));
}

Goodput goodput(const GoodputInputs& inputs) {
  const Result<Goodput> found = goodput_of(inputs);
  EXPECT_TRUE(found) << found.error().text();
  return found.value_or(Goodput{});
}

double sum(const Goodput& g) {
  return g.effective + g.checkpoints + g.lost_work + g.detection + g.restart + g.reading;
}

GoodputInputs any_inputs(Rng& rng) {
  const double persist = 100 * rng.uniform();
  return {.mean_time_to_failure = Seconds(2000 + 2e5 * rng.uniform()),
          .checkpoint = {.stall = Seconds(persist * rng.uniform()),
                         .persist = Seconds(persist),
                         .read = Seconds(60 * rng.uniform())},
          .detect = Seconds(60 * rng.uniform()),
          .restart = Seconds(300 * rng.uniform()),
          .step = Seconds(0.1 + 20 * rng.uniform())};
}

TEST(Goodput, SixteenThousandH100sFailEveryThreeHours) {
  // 419 unexpected interruptions in 54 days.
  EXPECT_NEAR(mean_time("llama3", 2048).value() / 3600, 54.0 * 24 / 419, 0.01);
  // RSC-1's projection: 16,384 accelerators, 1.8 hours.
  EXPECT_NEAR(mean_time("rsc-1", 2048).value() / 3600, 1.8, 0.01);
}

TEST(Goodput, YoungAndDalyAgreeWhereWritingIsShort) {
  const Result<Seconds> young = young_interval(Seconds(1), Seconds(1e6));
  ASSERT_TRUE(young) << young.error().text();
  EXPECT_NEAR(young->value(), std::sqrt(2e6), 1e-9);
  const Result<Seconds> daly = daly_interval(Seconds(1), Seconds(1e6));
  ASSERT_TRUE(daly) << daly.error().text();
  // sqrt(2e6) (1 + sqrt(5e-7)/3 + 5e-7/9) - 1
  EXPECT_NEAR(daly->value(), 1413.5470, 1e-3);
  EXPECT_EQ(daly_interval(Seconds(500), Seconds(250)), Seconds(250)) << "w = 2M: the interval is M";
  EXPECT_FALSE(young_interval(Seconds(kNan), Seconds(1)));
  EXPECT_FALSE(daly_interval(Seconds(1), Seconds(0)));
}

TEST(Goodput, CheckpointsWeighWhatIsPublished) {
  struct Published {
    double parameters;
    double bytes;
  };
  for (const Published& p : {Published{8.03e9, 112742891520.0},
                             {70.55e9, 979252543488.0},
                             {405.85e9, 5816416510935.0}}) {
    const Result<Bytes> bytes =
        checkpoint_bytes(builtin_constants(), p.parameters, CheckpointContent::kFull);
    ASSERT_TRUE(bytes) << bytes.error().text();
    EXPECT_NEAR(bytes->value() / p.bytes, 1, 0.025) << p.parameters;
  }
  EXPECT_EQ(checkpoint_bytes(builtin_constants(), 1e9, CheckpointContent::kWeights), Bytes(2e9));
  EXPECT_FALSE(checkpoint_bytes(builtin_constants(), 0, CheckpointContent::kFull));
}

TEST(Goodput, WritingBehindStallsForTheCopyAlone) {
  CheckpointTransfer transfer{.bytes = Bytes(5.6e12),
                              .accelerators = 16384,
                              .write = BytesPerSecond(2e12),
                              .read = BytesPerSecond(7e12),
                              .device_to_host = BytesPerSecond(25e9),
                              .mode = CheckpointMode::kBehind};
  const Result<CheckpointTimes> behind = checkpoint_times(transfer);
  ASSERT_TRUE(behind) << behind.error().text();
  EXPECT_NEAR(behind->stall.value(), 5.6e12 / (16384 * 25e9), 1e-9);
  EXPECT_NEAR(behind->persist.value(), 2.8, 1e-9);
  EXPECT_NEAR(behind->read.value(), 0.8, 1e-9);
  transfer.mode = CheckpointMode::kBlocking;
  transfer.copies_read = 128;
  const Result<CheckpointTimes> blocking = checkpoint_times(transfer);
  ASSERT_TRUE(blocking) << blocking.error().text();
  EXPECT_EQ(blocking->stall, blocking->persist);
  EXPECT_NEAR(blocking->read.value(), 128 * 0.8, 1e-9);
  transfer.write = BytesPerSecond(0);
  EXPECT_FALSE(checkpoint_times(transfer));
}

TEST(Goodput, RestartTimesGoThroughTheCatalogsRows) {
  EXPECT_NEAR(restart(8).value(), 60, 1e-9);
  EXPECT_NEAR(restart(1024).value(), 180, 1e-9);
  EXPECT_NEAR(restart(16384).value(), 300, 1e-9);
  EXPECT_EQ(restart(1), Seconds(60));
  EXPECT_NEAR(restart(4096).value(), 240, 1e-9) << "half way in the logarithm";
  EXPECT_NEAR(restart(65536).value(), 360, 1e-9) << "the last slope goes on";
  EXPECT_EQ(restart(16384, RestartKind::kWarmSpares), Seconds(60));
  EXPECT_FALSE(restart_time(builtin_facts(), builtin_constants(), 0, RestartKind::kCold));
  Seconds before(0);
  for (double n = 1; n < 1e6; n *= 1.3) {
    EXPECT_GE(restart(n), before);
    before = restart(n);
  }
}

TEST(Goodput, DetectionTimesAreFoundByPath) {
  EXPECT_EQ(detection_time(builtin_facts(), "heartbeat"), Seconds(30));
  const Result<Seconds> typo = detection_time(builtin_facts(), "hartbeat");
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message.find("heartbeat"), std::string::npos);
}

TEST(Goodput, ALlama3RunKeepsWhatWasPublished) {
  GoodputInputs inputs{
      .mean_time_to_failure = mean_time("llama3", 2048),
      .checkpoint = {.stall = Seconds(2), .persist = Seconds(3), .read = Seconds(3)},
      .detect = Seconds(10),
      .restart = restart(16384),
      .step = Seconds(4)};
  const Goodput cold = goodput(inputs);
  EXPECT_GT(cold.effective, 0.95) << "published: more than 0.90; closed form 0.95 to 0.96";
  EXPECT_LT(cold.effective, 0.96);
  inputs.restart = restart(16384, RestartKind::kWarmSpares);
  EXPECT_GT(goodput(inputs).effective, 0.97);
}

TEST(Goodput, AnIntervalWrittenOutByHand) {
  // M = 10,000 s, u0 = 400 s, dt = 600 s, w = 30 s: (1 - 700/10000) / 1.05.
  const Goodput g = goodput({.mean_time_to_failure = Seconds(10000),
                             .checkpoint = {Seconds(30), Seconds(30), Seconds(90)},
                             .detect = Seconds(10),
                             .restart = Seconds(300),
                             .step = Seconds(1),
                             .interval = Seconds(600)});
  EXPECT_NEAR(g.effective, 0.93 / 1.05, 1e-12);
  EXPECT_NEAR(g.lost_work, 0.03, 1e-12);
  EXPECT_NEAR(g.detection, 0.001, 1e-12);
  EXPECT_NEAR(g.restart, 0.03, 1e-12);
  EXPECT_NEAR(g.reading, 0.009, 1e-12);
}

TEST(Goodput, PartsSumToOneAndNoIntervalBeatsTheChosen) {
  Rng rng(51);
  for (int i = 0; i < 2000; ++i) {
    GoodputInputs inputs = any_inputs(rng);
    const Goodput best = goodput(inputs);
    EXPECT_NEAR(sum(best), 1, 1e-12);
    EXPECT_GE(best.checkpoints, -1e-15);
    const Seconds least =
        std::max(inputs.step, inputs.checkpoint.persist - inputs.checkpoint.stall);
    EXPECT_GE(best.interval, least);
    for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
      inputs.interval = std::max(best.interval * factor, least);
      const Result<Goodput> other = goodput_of(inputs);
      if (other) {
        EXPECT_LE(other->effective, best.effective + 1e-12) << factor;
      }
    }
  }
}

TEST(Goodput, TheChosenIntervalIsNearYoungsWhenFailuresAreRare) {
  const GoodputInputs rare{.mean_time_to_failure = Seconds(1e7),
                           .checkpoint = {Seconds(10), Seconds(10), Seconds(10)},
                           .detect = Seconds(10),
                           .restart = Seconds(100),
                           .step = Seconds(1)};
  const Seconds young = young_interval(Seconds(10), Seconds(1e7)).value_or(Seconds(0));
  EXPECT_NEAR(goodput(rare).interval / young, 1, 2e-3);
}

TEST(Goodput, MoreNodesOrSlowerRecoveryNeverHelp) {
  Rng rng(52);
  for (int i = 0; i < 500; ++i) {
    GoodputInputs inputs = any_inputs(rng);
    const double here = goodput(inputs).effective;
    GoodputInputs slower = inputs;
    slower.restart += Seconds(20);
    EXPECT_LT(goodput(slower).effective, here);
    GoodputInputs larger = inputs;
    larger.mean_time_to_failure = inputs.mean_time_to_failure * 0.95;
    EXPECT_LT(goodput(larger).effective, here);
  }
}

TEST(Goodput, AJobThatFailsFasterThanItRestartsIsInfeasible) {
  const Result<Goodput> never = goodput_of({.mean_time_to_failure = Seconds(100),
                                            .checkpoint = {Seconds(1), Seconds(1), Seconds(1)},
                                            .detect = Seconds(30),
                                            .restart = Seconds(300),
                                            .step = Seconds(1)});
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().kind, ErrorKind::kInfeasible);
}

TEST(Goodput, RefusesAnIntervalShorterThanAStepAndFiguresThatAreNone) {
  Rng rng(53);
  GoodputInputs inputs = any_inputs(rng);
  inputs.interval = inputs.step * 0.5;
  EXPECT_FALSE(goodput_of(inputs));
  inputs.interval = Seconds(kNan);
  EXPECT_FALSE(goodput_of(inputs));
  inputs.interval.reset();
  inputs.detect = Seconds(-1);
  EXPECT_FALSE(goodput_of(inputs));
  EXPECT_FALSE(mean_time_to_failure({.id = "none", .failures_per_1000_node_days = 0}, 8));
  EXPECT_FALSE(mean_time_to_failure({.id = "some", .failures_per_1000_node_days = 1}, 0));
}

}  // namespace
}  // namespace orrery

#include "twin/traffic/step_traffic.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "perf/repository_facts_test.hpp"
#include "perf/training/training_step.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

constexpr double kNicBytes = 4e11;  ///< 8 x 400 Gb/s

const Model& model_named(std::string_view name) {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  return kModels->find(name)->model;
}

TrainingModel training(std::string_view name, std::uint64_t ranks, double batch) {
  const TrainingJob job{
      .model = &model_named(name), .sequence = Tokens(4096), .global_batch = batch};
  const Machine machine = *machine_of(
      builtin_facts(),
      {.accelerator = builtin_facts().find<Accelerator>("h100"), .accelerators = ranks});
  return *TrainingModel::make(job, machine, builtin_constants());
}

GangSplit dgx() {
  return {.node_ranks = 8, .domain_ranks = 8, .node_bandwidth = BytesPerSecond(kNicBytes)};
}

StepTraffic traffic_of(const TrainingModel& model, const ParallelPlan& plan,
                       const GangSplit& layout = dgx()) {
  EXPECT_TRUE(model.check(plan));
  return training_traffic(model, plan, model.evaluate(plan).terms, layout);
}

StepTraffic ring(double seconds, double window, double bytes) {
  StepTraffic traffic{.seconds = Seconds(seconds), .window = Seconds(window)};
  traffic.add({.node_bytes = Bytes(bytes)});
  return traffic;
}

TEST(StepTraffic, a_step_grows_by_what_sending_takes_beyond_its_window) {
  const StepTraffic traffic = ring(10, 4, 400e9);
  EXPECT_DOUBLE_EQ(traffic.demand().value(), 100e9);
  EXPECT_DOUBLE_EQ(stretched_step(traffic, BytesPerSecond(200e9)).value(), 10);
  EXPECT_DOUBLE_EQ(stretched_step(traffic, BytesPerSecond(100e9)).value(), 10);
  EXPECT_DOUBLE_EQ(stretched_step(traffic, BytesPerSecond(50e9)).value(), 14);
  EXPECT_DOUBLE_EQ(stretched_step(traffic, BytesPerSecond(25e9)).value(), 22);
  EXPECT_TRUE(std::isinf(stretched_step(traffic, BytesPerSecond(0)).value()));
  EXPECT_DOUBLE_EQ(stretched_step({.seconds = Seconds(3)}, BytesPerSecond(0)).value(), 3);
}

TEST(StepTraffic, no_more_bytes_pass_than_the_share_lets_through) {
  for (double window = 1; window <= 10; window += 1) {
    const StepTraffic traffic = ring(10, window, 400e9);
    double last = 10;
    for (double share = 1e11; share > 1e9; share *= 0.8) {
      const double step = stretched_step(traffic, BytesPerSecond(share)).value();
      EXPECT_LE(400e9 / step, share * (1 + 1e-12));
      EXPECT_GE(step, last);
      last = step;
    }
  }
}

TEST(StepTraffic, a_ring_leaves_a_part_once_a_shift_by_its_reach_and_a_spread_in_proportion) {
  const Exchange ring{.reach = 1};
  EXPECT_EQ(crossing_nodes(ring, 16, 64), 1);
  EXPECT_EQ(crossing_nodes(ring, 64, 64), 0);
  const Exchange stages{.reach = 8};
  EXPECT_EQ(crossing_nodes(stages, 4, 64), 4);
  EXPECT_EQ(crossing_nodes(stages, 16, 64), 8);
  EXPECT_EQ(crossing_nodes(stages, 60, 64), 4);
  const Exchange all{.pattern = ExchangePattern::kSpread, .reach = 64};
  EXPECT_EQ(crossing_nodes(all, 16, 64), 12);
  EXPECT_EQ(crossing_nodes(all, 64, 64), 0);
  const Exchange groups{.pattern = ExchangePattern::kSpread, .reach = 4};
  EXPECT_EQ(crossing_nodes(groups, 1, 64), 0.75);
  EXPECT_EQ(crossing_nodes(groups, 16, 64), 0) << "whole groups inside";
}

TEST(StepTraffic, a_data_parallel_node_sends_its_gradients_and_gathers_weights_once) {
  const TrainingModel model = training("llama-3.1-8b", 64, 64);
  const ParallelPlan plan{.tp = 8, .dp = 8, .zero = 1};
  const StepTraffic traffic = traffic_of(model, plan);
  ASSERT_EQ(traffic.count, 1U);
  const ModelWork& work = model.work();
  double layers = 0;
  for (const LayerWork& kind : work.kinds) layers += kind.layers * kind.parameters;
  // By hand: 8 ranks hold an eighth each, and no two share a domain: 7/8 of 4 + 2 bytes.
  const double expected = (layers + std::max(work.embedding, work.head)) * 6 * 7 / 8;
  EXPECT_NEAR(traffic.sent()[0].node_bytes.value(), expected, 1e-9 * expected);
  EXPECT_EQ(traffic.sent()[0].reach, 1);
  EXPECT_LE(traffic.window, traffic.seconds);
}

TEST(StepTraffic, full_sharding_sends_the_weights_three_times_a_micro_batch) {
  const TrainingModel model = training("llama-3.1-8b", 64, 128);
  const ParallelPlan sharded{.dp = 64, .zero = 3};
  const StepTraffic traffic = traffic_of(model, sharded);
  const ParallelPlan reduced{.dp = 64, .zero = 1};
  const StepTraffic once = traffic_of(model, reduced);
  // 3 x 2 bytes twice over (two micro-batches) against 4 + 2 bytes.
  EXPECT_NEAR(traffic.node_bytes() / once.node_bytes(), 2, 1e-9);
  EXPECT_GT(traffic.window, once.window) << "all computation may hide it, not one micro-batch's";
}

TEST(StepTraffic, stages_send_to_the_stage_behind) {
  const TrainingModel model = training("llama-3.1-70b", 64, 64);
  const ParallelPlan plan{.tp = 8, .pp = 4, .dp = 2, .zero = 1};
  const StepTraffic traffic = traffic_of(model, plan);
  ASSERT_EQ(traffic.count, 2U);
  const Exchange& stages = traffic.sent()[1];
  EXPECT_EQ(stages.reach, 2) << "two nodes a stage";
  // 32 micro-batches of 4096 x 8192 x 2 bytes over 3 borders of 4 stages, there and back.
  const double expected = 2 * 32 * 3.0 / 4 * 4096 * 8192 * 2;
  EXPECT_NEAR(stages.node_bytes.value(), expected, 1e-9 * expected);
}

TEST(StepTraffic, inside_one_domain_nothing_reaches_the_network) {
  const TrainingModel model = training("llama-3.1-8b", 64, 64);
  const ParallelPlan plan{.tp = 8, .dp = 8, .zero = 1};
  GangSplit layout = dgx();
  layout.domain_ranks = 64;
  EXPECT_EQ(traffic_of(model, plan, layout).count, 0U);
}

TEST(StepTraffic, a_demand_is_never_above_the_nics) {
  const TrainingModel model = training("llama-3.1-8b", 64, 64);
  for (const ParallelPlan& plan :
       {ParallelPlan{.tp = 8, .dp = 8}, ParallelPlan{.dp = 64, .zero = 3},
        ParallelPlan{.tp = 2, .dp = 32, .zero = 2}, ParallelPlan{.tp = 4, .pp = 2, .dp = 8}}) {
    const StepTraffic traffic = traffic_of(model, plan);
    EXPECT_GT(traffic.demand().value(), 0);
    EXPECT_LE(traffic.demand().value(), kNicBytes * (1 + 1e-12));
    EXPECT_DOUBLE_EQ(traffic.seconds.value(), model.evaluate(plan).seconds);
  }
}

TEST(StepTraffic, experts_spread_over_their_group) {
  const TrainingModel model = training("mixtral-8x7b", 64, 64);
  GangSplit layout = dgx();
  layout.node_ranks = layout.domain_ranks = 4;
  const ParallelPlan plan{.dp = 64, .ep = 8, .zero = 1};
  const StepTraffic traffic = traffic_of(model, plan, layout);
  const Exchange& experts = traffic.sent()[traffic.count - 1];
  EXPECT_EQ(experts.pattern, ExchangePattern::kSpread);
  EXPECT_EQ(experts.reach, 2);
  // Each of 4 ranks: dispatch and combine in both passes of 32 layers, two experts a token.
  const double expected = 4.0 * 4 * 32 * 2 * 4096 * 4096 * 2;
  EXPECT_NEAR(experts.node_bytes.value(), expected, 1e-9 * expected);
}

}  // namespace
}  // namespace orrery

// perf/training/local_training_test.cpp - a step of local ranks priced with measured constants:
// what was measured comes out again, and what lies between.
#include "perf/training/local_training.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

constexpr double kRate = 1e11;
constexpr double kHalf = 16;

/// A machine whose products obey the cost model's curve, at `part` of a core for a rank.
BusyRanks busy_ranks(std::uint32_t ranks, double part) {
  BusyRanks busy{.ranks = ranks,
                 .optimizer = Seconds(1e-3 / part),
                 .copy = BytesPerSecond(1e10 * part),
                 .durable_write = BytesPerSecond(1e9)};
  for (const std::int64_t width : {64, 256, 1024}) {
    const double inverse = (2.0 / static_cast<double>(width) + 1.0 / 512) / 3;
    busy.products.push_back(
        {512, width, width, FlopsPerSecond(part * kRate / (1 + kHalf * inverse))});
  }
  for (const std::int64_t width : {32, 128}) {
    busy.attention.push_back({128, 4, width, Seconds(3e-4 / part), Seconds(7e-4 / part)});
  }
  for (const bool gated : {false, true}) {
    for (const std::int64_t layers : {1, 3}) {
      const double seconds = (0.006 + 0.05 * static_cast<double>(layers)) / part;
      busy.models.push_back({.shape = {.layers = layers, .gated = gated},
                             .sequences = 4,
                             .gradient = Seconds(seconds)});
    }
  }
  if (ranks > 1) {
    busy.shared_memory = {Seconds(1e-5), BytesPerSecond(4e9)};
    busy.sockets = {Seconds(1e-4), BytesPerSecond(1e9)};
  }
  return busy;
}

/// Two cores.
NodeCalibration two_cores() {
  return {.machine = {.cores = 2},
          .busy = {busy_ranks(1, 1), busy_ranks(2, 1), busy_ranks(4, 0.5)}};
}

LocalStepModel model_for(const LocalTraining& training) {
  auto model = LocalStepModel::make(two_cores(), builtin_constants(), training);
  EXPECT_TRUE(model) << (model ? "" : model.error().text());
  return *std::move(model);
}

double gradient_seconds(const LocalStep& step) {
  return step.terms.total() - step.terms[Term::kOptimizer] - step.terms[Term::kDataParallel];
}

TEST(LocalTraining, AModelThatWasMeasuredTakesWhatItTook) {
  for (const bool gated : {false, true}) {
    for (const std::int64_t layers : {1, 2, 3, 8}) {
      const LocalStepModel model =
          model_for({.shape = {.layers = layers, .gated = gated}, .sequences = 4});
      const auto step = model.predict({.micro = 4});
      ASSERT_TRUE(step);
      EXPECT_NEAR(gradient_seconds(*step), 0.006 + 0.05 * static_cast<double>(layers), 1e-9);
    }
  }
}

TEST(LocalTraining, ProductsFollowTheMeasuredCurveWhateverTheirTiles) {
  // Widths that are no multiple of a device's tiles.
  const TrainedShape shape{.layers = 1, .width = 192, .heads = 6, .kv_heads = 6, .ffn = 768};
  const auto step = model_for({.shape = shape, .sequences = 4}).predict({.micro = 4});
  ASSERT_TRUE(step);
  double seconds = 0;
  for (const auto& [in, out] : {std::pair{192, 576}, {192, 192}, {192, 768}, {768, 192}}) {
    for (const double inner : {static_cast<double>(in), static_cast<double>(out), 512.0}) {
      seconds += 2.0 * 512 * in * out / kRate * (1 + kHalf / inner);
    }
  }
  EXPECT_NEAR(step->terms[Term::kMatmul], seconds, 1e-6 * seconds);
}

TEST(LocalTraining, ProductsThatAreFasterWhenSmallHaveTheMeanRate) {
  NodeCalibration node = two_cores();
  node.busy.resize(1);
  std::vector<MeasuredProduct>& products = node.busy[0].products;
  products[0].rate = FlopsPerSecond(1.25e11);
  products[1].rate = FlopsPerSecond(1e11);
  products[2].rate = FlopsPerSecond(1e11);
  const auto model =
      LocalStepModel::make(node, builtin_constants(), {.shape = {.layers = 1}, .sequences = 4});
  ASSERT_TRUE(model);
  const auto step = model->predict({.micro = 4});
  ASSERT_TRUE(step);
  const double operations = 3 * 2.0 * 512 * 12 * 256 * 256;
  EXPECT_NEAR(step->terms[Term::kMatmul], operations * (0.8e-11 + 2e-11) / 3, 1e-9);
}

TEST(LocalTraining, TheExchangeIsItsLatencyAndItsBytes) {
  const TrainedShape shape{.layers = 2};
  const double weights = 2 * (12 * 256 * 256 + 13 * 256) + (256 + 128) * 256;
  for (const auto& [path, latency, bandwidth] :
       {std::tuple{LocalExchange::kSharedMemory, 1e-5, 4e9},
        {LocalExchange::kSockets, 1e-4, 1e9}}) {
    const auto step = model_for({.shape = shape, .sequences = 8, .shards = 4, .exchange = path})
                          .predict({.ranks = 4, .micro = 2});
    ASSERT_TRUE(step);
    const double seconds = latency + 4 * weights / bandwidth;
    EXPECT_NEAR(step->terms[Term::kDataParallel], seconds, 0.02 * seconds);
  }
}

TEST(LocalTraining, LayersThatAreComputedAgainTakeAThirdMore) {
  const TrainedShape shape{.layers = 4};
  const LocalStepModel model = model_for({.shape = shape, .sequences = 4});
  const auto kept = model.predict({.micro = 4});
  const auto again = model.predict({.micro = 4, .recompute = Recompute::kFull});
  ASSERT_TRUE(kept && again);
  const double layers = 0.05 * 3;
  EXPECT_NEAR(again->seconds - kept->seconds, layers / 3, 0.25 * layers / 3);
}

TEST(LocalTraining, MoreRanksThanCoresAreNoFaster) {
  const LocalStepModel model = model_for({.sequences = 16, .shards = 4});
  const auto one = model.predict({.ranks = 1, .most_shards = 4, .micro = 4});
  const auto two = model.predict({.ranks = 2, .most_shards = 2, .micro = 4});
  const auto four = model.predict({.ranks = 4, .most_shards = 1, .micro = 4});
  ASSERT_TRUE(one && two && four);
  EXPECT_NEAR(gradient_seconds(*two), gradient_seconds(*one) / 2, 0.02 * one->seconds);
  EXPECT_NEAR(gradient_seconds(*four), gradient_seconds(*two), 0.02 * one->seconds);
}

TEST(LocalTraining, AStepIsNoShorterThanItsFullestRank) {
  const LocalStepModel model = model_for({.sequences = 16, .shards = 4});
  const auto two = model.predict({.ranks = 2, .most_shards = 2, .micro = 4});
  const auto uneven = model.predict({.ranks = 2, .most_shards = 3, .micro = 4});
  const auto one = model.predict({.ranks = 1, .most_shards = 4, .micro = 4});
  // Three ranks lie between two and four, and the one with two shards is a core's work in half.
  const auto three = model.predict({.ranks = 3, .most_shards = 2, .micro = 4});
  ASSERT_TRUE(one && two && uneven && three);
  EXPECT_GT(uneven->seconds, 1.3 * two->seconds);
  EXPECT_LT(uneven->seconds, one->seconds);
  EXPECT_NEAR(three->seconds, two->seconds, 0.05 * two->seconds);
}

TEST(LocalTraining, LayersThatAreSharedTakeTheirPartAndAnExchange) {
  const LocalTraining training{.shape = {.layers = 4}, .sequences = 8, .shards = 2};
  const auto one = model_for(training).predict({.most_shards = 2, .micro = 4});
  const auto halves =
      model_for(training).predict({.ranks = 2, .most_shards = 2, .micro = 4, .tp = 2});
  ASSERT_TRUE(one && halves);
  EXPECT_NEAR(halves->terms[Term::kMatmul], one->terms[Term::kMatmul] / 2,
              0.02 * one->terms[Term::kMatmul]);
  // Exchanges of half the rows, for each of two micro-batches and four layers: four forward and six
  // backward, of 4 x 128 rows of 256.
  const double sums = 2 * 4 * 10 * (0.5e-5 + 2.0 * 4 * 128 * 256 / 4e9);
  EXPECT_NEAR(halves->terms[Term::kTensorParallel], sums, 0.3 * sums);
  EXPECT_EQ(halves->terms[Term::kDataParallel], 0);
}

TEST(LocalTraining, APipelineRunsEmptyAfterEachShard) {
  const auto step = [](std::uint32_t shards, std::uint32_t ranks) {
    const LocalStepModel model =
        model_for({.shape = {.layers = 4}, .sequences = 16, .shards = shards});
    return *model.predict({.ranks = ranks, .most_shards = shards, .micro = 2, .pp = ranks});
  };
  const LocalStep one = step(1, 2);
  const LocalStep four = step(4, 2);
  EXPECT_GT(one.terms[Term::kPipelineBubble], 0);
  // Shards are set to 0 and added up, too.
  EXPECT_NEAR(four.terms[Term::kPipelineBubble], 4 * one.terms[Term::kPipelineBubble],
              0.02 * four.terms[Term::kPipelineBubble]);
  // The first and the last of eight micro-batches leave one stage idle.
  const double work = one.terms[Term::kMatmul] + one.terms[Term::kElementwise];
  EXPECT_NEAR(one.terms[Term::kPipelineBubble], work / 8, 0.4 * work / 8);
  // On two cores four stages are no slower for what two of them leave idle.
  EXPECT_EQ(step(1, 4).terms[Term::kPipelineBubble], 0);
}

TEST(LocalTraining, SaysWhatWasNotMeasured) {
  const LocalStepModel model = model_for({.sequences = 16, .shards = 8});
  const auto many = model.predict({.ranks = 8, .micro = 2});
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().text().find("1 to 4 busy"), std::string::npos);
  EXPECT_NE(many.error().text().find("--ranks 8"), std::string::npos);
  EXPECT_FALSE(model.predict({.ranks = 0, .micro = 2}));
  NodeCalibration node = two_cores();
  for (BusyRanks& busy : node.busy) busy.models.resize(2);
  const auto llama = LocalStepModel::make(node, builtin_constants(), {.shape = {.gated = true}});
  ASSERT_FALSE(llama);
  EXPECT_NE(llama.error().text().find("no two llama models"), std::string::npos);
}

}  // namespace
}  // namespace orrery

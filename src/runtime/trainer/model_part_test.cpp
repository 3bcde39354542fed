#include "runtime/trainer/model_part.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/ranks/replica_peers.hpp"
#include "runtime/trainer/transformer.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

AlignedFloats normal_floats(const ParameterLayout& layout, double deviation, std::uint64_t seed) {
  AlignedFloats floats(layout.size());
  Rng rng(seed);
  for (const ParameterTensor& tensor : layout.tensors()) {
    const Normal normal{.mean = deviation < 1 ? tensor.mean : 0, .deviation = deviation};
    for (std::size_t i = 0; i < tensor.size; ++i) {
      floats[tensor.begin + i] = static_cast<float>(normal.sample(rng));
    }
  }
  return floats;
}

std::vector<std::int32_t> some_tokens(const TransformerConfig& config) {
  Rng rng(11);
  std::vector<std::int32_t> tokens(2 * static_cast<std::size_t>(config.sequence + 1));
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(config.vocab)));
  }
  return tokens;
}

struct SharedCase {
  const char* name;
  TransformerFamily family;
  TrainingLayout layout;
  std::int64_t kv_heads = 0;
  ActivationRecompute recompute = ActivationRecompute::kNone;
  std::int64_t experts = 0;
};

class SharedModelThreads : public testing::TestWithParam<SharedCase> {
 protected:
  [[nodiscard]] static TransformerConfig config() {
    TransformerConfig config = shared_config(GetParam().family);
    config.kv_heads = GetParam().kv_heads;
    config.recompute = GetParam().recompute;
    config.experts = GetParam().experts;
    config.router_loss = 0.5;
    return config;
  }

  static void expect_those_of_the_whole();

  /// Runs `body` with the part of each rank's model.
  using Body = std::function<void(TrainableTransformer&, const WholeModel&)>;
  static void share(const Body& body) {
    TrainingSpec spec;
    spec.model = config();
    spec.layout = GetParam().layout;
    spec.batch = {.sequences = 2, .shards = 1, .micro = 2};
    const TestGang gang(spec.layout.ranks(), TestGang::Memory::kShared);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      RankGrid grid(spec, *group);
      TrainableTransformer model(config(), 2, grid.part());
      const std::span<std::byte> room = group->workspace();
      ReplicaPeers peers(spec, grid,
                         {reinterpret_cast<float*>(room.data()), room.size() / sizeof(float)});
      model.share(peers);
      body(model, WholeModel(config(), grid.part()));
      EXPECT_FALSE(peers.broken());
      group->farewell();
    });
  }
};

using enum TransformerFamily;
using enum ActivationRecompute;

INSTANTIATE_TEST_SUITE_P(
    Trainer, SharedModelThreads,
    testing::Values(
        SharedCase{"GptOfTwo", kGpt, {.tp = 2}}, SharedCase{"GptOfFour", kGpt, {.tp = 4}},
        SharedCase{"GptThatRecomputes", kGpt, {.tp = 2}, 0, ActivationRecompute::kFull},
        SharedCase{"LlamaWithSharedKeys", kLlama, {.tp = 2}, 2},
        SharedCase{"LlamaOfFour", kLlama, {.tp = 4}}, SharedCase{"GptInTwoStages", kGpt, {.pp = 2}},
        SharedCase{"GptInFourStages", kGpt, {.pp = 4}},
        SharedCase{"GptInStagesThatRecomputes", kGpt, {.pp = 2}, 0, ActivationRecompute::kFull},
        SharedCase{"LlamaInTwoStages", kLlama, {.pp = 2}, 2},
        SharedCase{"LlamaInFourStages", kLlama, {.pp = 4}},
        SharedCase{"GptInTwoStagesOfTwo", kGpt, {.tp = 2, .pp = 2}},
        SharedCase{"LlamaInTwoStagesOfTwo", kLlama, {.tp = 2, .pp = 2}, 2}),
    [](const auto& shared) { return shared.param.name; });

/// Mixtures of experts are not tested by finite differences: a step would change a row's choice.
class SharedExpertThreads : public SharedModelThreads {};

INSTANTIATE_TEST_SUITE_P(
    Trainer, SharedExpertThreads,
    testing::Values(
        SharedCase{"GptOfExpertsInTwoStages", kGpt, {.pp = 2}, 0, kNone, 4},
        SharedCase{"GptWithCutExperts", kGpt, {.tp = 2}, 0, kNone, 4},
        SharedCase{"GptWithExpertsSharedOut", kGpt, {.tp = 2, .ep = 2}, 0, kFull, 4},
        SharedCase{"LlamaWithCutExperts", kLlama, {.tp = 4}, 0, kNone, 2},
        SharedCase{"LlamaWithAnExpertARank", kLlama, {.tp = 4, .ep = 4}, 0, kNone, 4},
        SharedCase{"LlamaWithCutExpertsSharedOut", kLlama, {.tp = 4, .ep = 2}, 0, kNone, 6},
        SharedCase{
            "LlamaInStagesOfExpertsSharedOut", kLlama, {.tp = 2, .pp = 2, .ep = 2}, 2, kNone, 4}),
    [](const auto& shared) { return shared.param.name; });

/// Returns the length of the difference of two gradients of a tensor, relative to the second.
double relative_error(const ParameterTensor& tensor, std::span<const float> found,
                      std::span<const float> expected) {
  double error = 0;
  double square = 0;
  for (std::size_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
    error += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    square += std::pow(static_cast<double>(expected[i]), 2);
  }
  return square == 0 ? error : std::sqrt(error / square);
}

void SharedModelThreads::expect_those_of_the_whole() {
  TrainableTransformer whole(config(), 2);
  const AlignedFloats parameters = normal_floats(whole.layout(), 0.3, 7);
  const std::vector<std::int32_t> tokens = some_tokens(config());
  AlignedFloats gradient(whole.layout().size());
  const float loss = whole.loss_and_gradient(parameters, tokens, gradient, 0.5F);
  const double balance = whole.router_loss();
  share([&](TrainableTransformer& model, const WholeModel& parts) {
    const ModelPart& part = parts.own().part();
    const AlignedFloats own = part_of(parts, parameters);
    const auto compute = [&](AlignedFloats& to) {
      const float own_loss = model.loss_and_gradient(own, tokens, to, 0.5F);
      model.join(to);
      return own_loss;
    };
    AlignedFloats found(own.size());
    EXPECT_NEAR(compute(found), part.last() ? loss : 0, 1e-5F * loss);
    const AlignedFloats expected = part_of(parts, gradient);
    for (const ParameterTensor& tensor : parts.own().tensors()) {
      EXPECT_LT(relative_error(tensor, found, expected), 2e-5) << tensor.name;
    }
    if (part.tensor_ranks == 1 && !config().tied_embedding) {
      EXPECT_EQ(found, expected) << "the same products in the same order";
    }
    if (part.stages == 1) {
      EXPECT_NEAR(model.router_loss(), balance, 1e-5 * balance);
    }
    AlignedFloats again(own.size());
    (void)compute(again);
    EXPECT_EQ(again, found) << "the same bits";
    EXPECT_LT(model.activation_bytes(), whole.activation_bytes());
  });
}

TEST_P(SharedModelThreads, HaveTheLossAndTheGradientOfTheWholeModel) {
  expect_those_of_the_whole();
}

TEST_P(SharedExpertThreads, HaveTheLossAndTheGradientOfTheWholeModel) {
  expect_those_of_the_whole();
}

TEST_P(SharedModelThreads, HaveTheGradientThatFiniteDifferencesFind) {
  TrainableTransformer whole(config(), 2);
  const AlignedFloats parameters = normal_floats(whole.layout(), 0.3, 7);
  const AlignedFloats direction = normal_floats(whole.layout(), 1, 3);
  const std::vector<std::int32_t> tokens = some_tokens(config());
  std::vector<double> slopes(GetParam().layout.ranks());
  std::vector<double> products(GetParam().layout.ranks());
  share([&](TrainableTransformer& model, const WholeModel& parts) {
    const AlignedFloats own = part_of(parts, parameters);
    const AlignedFloats along = part_of(parts, direction);
    AlignedFloats gradient(own.size());
    (void)model.loss_and_gradient(own, tokens, gradient, 1);
    model.join(gradient);
    const auto difference = [&](double step) {
      const auto loss_at = [&](double distance) {
        AlignedFloats moved = own;
        for (std::size_t i = 0; i < moved.size(); ++i) {
          moved[i] += static_cast<float>(distance) * along[i];
        }
        return static_cast<double>(model.loss(moved, tokens));
      };
      return (loss_at(step) - loss_at(-step)) / (2 * step);
    };
    const double h = 1e-3;
    const std::uint32_t number = parts.own().part().number();
    slopes[number] = (4 * difference(h / 2) - difference(h)) / 3;
    for (const ParameterTensor& tensor : parts.own().tensors()) {
      if (!tensor.counts) continue;
      for (std::size_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
        products[number] += static_cast<double>(gradient[i]) * static_cast<double>(along[i]);
      }
    }
  });
  const std::size_t earlier = slopes.size() - GetParam().layout.tp;
  const double slope = slopes.back();
  for (std::size_t number = 0; number < slopes.size(); ++number) {
    EXPECT_EQ(slopes[number], number < earlier ? 0 : slope) << "all of the last stage have it";
  }
  const double expected = std::accumulate(products.begin(), products.end(), 0.0);
  EXPECT_NEAR(slope, expected, 5e-3 * std::abs(expected) + 1e-2);
}

TEST(ModelPart, SaysWhatCannotBeShared) {
  const auto reason = [](TransformerConfig config, const ModelPart& part) {
    config.where = {"gpt.yaml", 3, 1};
    const Status status = check_parts(config, part);
    return status ? std::string() : status.error().text();
  };
  const auto message = [](TransformerConfig config, std::uint32_t ranks, std::uint32_t stages = 1) {
    config.where = {"gpt.yaml", 3, 1};
    const Status status = check_parts(config, {.tensor_ranks = ranks, .stages = stages});
    return status ? std::string() : status.error().text();
  };
  EXPECT_EQ(message({}, 1), "");
  EXPECT_EQ(message({}, 4), "");
  EXPECT_EQ(message({}, 0), "gpt.yaml:3:1: layout.tp: at least 1");
  EXPECT_EQ(message({}, 3), "gpt.yaml:3:1: layout.tp: 4 heads are not 3 equal parts");
  EXPECT_EQ(message({}, 4, 4), "");
  EXPECT_EQ(message({}, 1, 0), "gpt.yaml:3:1: layout.pp: at least 1");
  EXPECT_EQ(message({}, 1, 3), "gpt.yaml:3:1: layout.pp: 4 layers are not 3 equal stages");
  EXPECT_EQ(message({.family = TransformerFamily::kLlama, .kv_heads = 2}, 4),
            "gpt.yaml:3:1: layout.tp: 2 key-value heads are not 4 equal parts");
  EXPECT_EQ(message({.ffn = 48}, 2),
            "gpt.yaml:3:1: layout.tp: 48 inner columns are not 2 parts of a multiple of 16");
  EXPECT_EQ(reason({.ffn = 48, .experts = 6}, {.tensor_ranks = 2, .expert_ranks = 2}), "");
  EXPECT_EQ(reason({}, {.tensor_ranks = 2, .expert_ranks = 2}),
            "gpt.yaml:3:1: layout.ep: expected 1, found 2: the model has no experts");
  EXPECT_EQ(reason({.experts = 3}, {.expert_ranks = 0}), "gpt.yaml:3:1: layout.ep: at least 1");
  EXPECT_EQ(reason({.experts = 3}, {.tensor_ranks = 2, .expert_ranks = 4}),
            "gpt.yaml:3:1: layout.ep: the 2 ranks of tp are not 4 groups");
  EXPECT_EQ(reason({.experts = 3}, {.tensor_ranks = 4, .expert_ranks = 2}),
            "gpt.yaml:3:1: layout.ep: 3 experts are not 2 equal parts");
}

}  // namespace
}  // namespace orrery

#include "runtime/trainer/model_part.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/distribution.hpp"
#include "base/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/trainer/transformer.hpp"
#include "runtime/training/rank_grid.hpp"
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
  std::int64_t kv_heads;
  std::uint32_t ranks;
  ActivationRecompute recompute;
};

class SharedModelThreads : public testing::TestWithParam<SharedCase> {
 protected:
  [[nodiscard]] static TransformerConfig config() {
    TransformerConfig config = shared_config(GetParam().family);
    config.kv_heads = GetParam().kv_heads;
    config.recompute = GetParam().recompute;
    return config;
  }

  /// Runs `body` with the part of each rank's model.
  using Body = std::function<void(TrainableTransformer&, const WholeModel&)>;
  static void share(const Body& body) {
    const std::uint32_t ranks = GetParam().ranks;
    const TestGang gang(ranks, TestGang::Memory::kShared);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      TrainableTransformer model(config(), 2, {rank, ranks});
      const std::span<std::byte> room = group->workspace();
      ReplicaSums sums(group->communicator(),
                       {reinterpret_cast<float*>(room.data()), room.size() / sizeof(float)});
      model.share(sums);
      body(model, WholeModel(config(), {rank, ranks}));
      EXPECT_FALSE(sums.broken());
      group->farewell();
    });
  }
};

INSTANTIATE_TEST_SUITE_P(
    Trainer, SharedModelThreads,
    testing::Values(
        SharedCase{"GptOfTwo", TransformerFamily::kGpt, 0, 2, ActivationRecompute::kNone},
        SharedCase{"GptOfFour", TransformerFamily::kGpt, 0, 4, ActivationRecompute::kNone},
        SharedCase{"GptThatRecomputes", TransformerFamily::kGpt, 0, 2, ActivationRecompute::kFull},
        SharedCase{"LlamaWithSharedKeys", TransformerFamily::kLlama, 2, 2,
                   ActivationRecompute::kNone},
        SharedCase{"LlamaOfFour", TransformerFamily::kLlama, 0, 4, ActivationRecompute::kNone}),
    [](const auto& shared) { return shared.param.name; });

TEST_P(SharedModelThreads, HaveTheLossAndTheGradientOfTheWholeModel) {
  TrainableTransformer whole(config(), 2);
  const AlignedFloats parameters = normal_floats(whole.layout(), 0.3, 7);
  const std::vector<std::int32_t> tokens = some_tokens(config());
  AlignedFloats gradient(whole.layout().size());
  const float loss = whole.loss_and_gradient(parameters, tokens, gradient, 0.5F);
  share([&](TrainableTransformer& model, const WholeModel& parts) {
    const AlignedFloats own = part_of(parts, parameters);
    AlignedFloats found(own.size());
    EXPECT_NEAR(model.loss_and_gradient(own, tokens, found, 0.5F), loss, 1e-5F * loss);
    const AlignedFloats expected = part_of(parts, gradient);
    for (const ParameterTensor& tensor : parts.own().tensors()) {
      double error = 0;
      double square = 0;
      for (std::size_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
        error += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
        square += std::pow(static_cast<double>(expected[i]), 2);
      }
      EXPECT_LT(std::sqrt(error / square), 2e-5) << tensor.name;
    }
    AlignedFloats again(own.size());
    (void)model.loss_and_gradient(own, tokens, again, 0.5F);
    EXPECT_EQ(again, found) << "the same bits";
    EXPECT_LT(model.activation_bytes(), whole.activation_bytes());
  });
}

TEST_P(SharedModelThreads, HaveTheGradientThatFiniteDifferencesFind) {
  TrainableTransformer whole(config(), 2);
  const AlignedFloats parameters = normal_floats(whole.layout(), 0.3, 7);
  const AlignedFloats direction = normal_floats(whole.layout(), 1, 3);
  const std::vector<std::int32_t> tokens = some_tokens(config());
  std::vector<double> slopes(GetParam().ranks);
  std::vector<double> products(GetParam().ranks);
  share([&](TrainableTransformer& model, const WholeModel& parts) {
    const AlignedFloats own = part_of(parts, parameters);
    const AlignedFloats along = part_of(parts, direction);
    AlignedFloats gradient(own.size());
    (void)model.loss_and_gradient(own, tokens, gradient, 1);
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
    const double slope = (4 * difference(h / 2) - difference(h)) / 3;
    // Tensors that all have count once.
    const std::uint32_t rank = parts.own().part().tensor_rank;
    double expected = 0;
    for (const ParameterTensor& tensor : parts.own().tensors()) {
      if (tensor.cut.whole() && rank != 0) continue;
      for (std::size_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
        expected += static_cast<double>(gradient[i]) * static_cast<double>(along[i]);
      }
    }
    products[rank] = expected;
    slopes[rank] = slope;
  });
  double expected = 0;
  for (std::uint32_t rank = 0; rank < GetParam().ranks; ++rank) {
    EXPECT_EQ(slopes[rank], slopes[0]) << "all have the same loss";
    expected += products[rank];
  }
  EXPECT_NEAR(slopes[0], expected, 5e-3 * std::abs(expected) + 1e-2);
}

TEST(ModelPart, SaysWhatCannotBeShared) {
  const auto message = [](TransformerConfig config, std::uint32_t ranks) {
    config.where = {"gpt.yaml", 3, 1};
    const Status status = check_tensor_ranks(config, ranks);
    return status ? std::string() : status.error().text();
  };
  EXPECT_EQ(message({}, 1), "");
  EXPECT_EQ(message({}, 4), "");
  EXPECT_EQ(message({}, 0), "gpt.yaml:3:1: layout.tp: at least 1");
  EXPECT_EQ(message({}, 3), "gpt.yaml:3:1: layout.tp: 4 heads are not 3 equal parts");
  EXPECT_EQ(message({.family = TransformerFamily::kLlama, .kv_heads = 2}, 4),
            "gpt.yaml:3:1: layout.tp: 2 key-value heads are not 4 equal parts");
  EXPECT_EQ(message({.ffn = 48}, 2),
            "gpt.yaml:3:1: layout.tp: 48 inner columns are not 2 parts of a multiple of 16");
}

}  // namespace
}  // namespace orrery

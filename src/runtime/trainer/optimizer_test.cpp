#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/rng.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/generate.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

AlignedFloats random_floats(std::size_t count, std::uint64_t seed) {
  AlignedFloats values(count);
  Rng rng(seed);
  for (float& value : values) value = static_cast<float>(rng.uniform()) - 0.5F;
  return values;
}

const TransformerConfig kSmall{
    .layers = 1, .width = 32, .heads = 2, .ffn = 64, .vocab = 21, .sequence = 16};

TEST(AdamWTest, TakesTheStepsOfTheFormulaAndDecaysMatricesOnly) {
  const ParameterLayout layout(kSmall);
  const AdamW optimizer{.weight_decay = 0.2};
  AlignedFloats parameters = random_floats(layout.size(), 1);
  const AlignedFloats start = parameters;
  const AlignedFloats gradient = random_floats(layout.size(), 2);
  AlignedFloats first(layout.size());
  AlignedFloats second(layout.size());
  for (std::int64_t number = 1; number <= 3; ++number) {
    update(optimizer, layout, {0, parameters, gradient, first, second}, {number, 0.01, 0.5F});
  }
  for (const ParameterTensor& tensor : layout.tensors()) {
    for (const std::size_t i : {tensor.begin, tensor.begin + tensor.size - 1}) {
      const double g = 0.5 * static_cast<double>(gradient[i]);
      double expected = start[i];
      double m = 0;
      double v = 0;
      for (int number = 1; number <= 3; ++number) {
        m = 0.9 * m + 0.1 * g;
        v = 0.95 * v + 0.05 * g * g;
        const double step =
            m / (1 - std::pow(0.9, number)) / (std::sqrt(v / (1 - std::pow(0.95, number))) + 1e-8);
        expected -= 0.01 * (step + (tensor.decays ? 0.2 : 0) * expected);
      }
      EXPECT_NEAR(parameters[i], expected, 1e-6) << tensor.name;
    }
  }
}

TEST(AdamWTest, GivesTheSameBitsHoweverTheVectorIsCut) {
  const ParameterLayout layout(kSmall);
  AlignedFloats whole = random_floats(layout.size(), 1);
  AlignedFloats cut = whole;
  const AlignedFloats gradient = random_floats(layout.size(), 2);
  AlignedFloats first(layout.size());
  AlignedFloats second(layout.size());
  AlignedFloats first_cut = first;
  AlignedFloats second_cut = second;
  const OptimizerStep step{1, 0.01};
  update({}, layout, {0, whole, gradient, first, second}, step);
  Rng rng(3);
  for (std::size_t begin = 0; begin < layout.size();) {
    const std::size_t size = std::min<std::size_t>(1 + rng.below(3000), layout.size() - begin);
    update({}, layout,
           {begin, std::span(cut).subspan(begin, size), std::span(gradient).subspan(begin, size),
            std::span(first_cut).subspan(begin, size), std::span(second_cut).subspan(begin, size)},
           step);
    begin += size;
  }
  EXPECT_EQ(cut, whole);
  EXPECT_EQ(first_cut, first);
  EXPECT_EQ(second_cut, second);
}

TEST(CosineScheduleTest, RisesFallsAndStays) {
  const CosineSchedule schedule{.peak = 1, .lowest = 0.1, .warmup = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(schedule.rate(1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 1);
  for (int number = 11; number < 110; ++number) {
    const double expected = 0.1 + 0.45 * (1 + std::cos(M_PI * (number - 10) / 100.0));
    EXPECT_NEAR(schedule.rate(number), expected, 1e-14) << number;
  }
  EXPECT_EQ(schedule.rate(110), 0.1);
  EXPECT_EQ(schedule.rate(10'000), 0.1);
}

TEST(GradientNormTest, IsTheLengthWhoeverHoldsTheBlocks) {
  const AlignedFloats gradient = random_floats(5 * kNormBlock + 37, 4);
  double square = 0;
  for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
  const double norm = gradient_norm(gradient);
  EXPECT_NEAR(norm, std::sqrt(square), 1e-12 * norm);
  std::vector<double> sums(norm_blocks(gradient.size()));
  const std::size_t cut = 2 * kNormBlock;
  block_squares(std::span(gradient).first(cut), std::span(sums).first(2));
  block_squares(std::span(gradient).subspan(cut), std::span(sums).subspan(2));
  EXPECT_EQ(std::sqrt(tree_sum(sums)), norm);
  EXPECT_EQ(tree_sum(sums), ((sums[0] + sums[1]) + (sums[2] + sums[3])) + (sums[4] + sums[5]));
  EXPECT_EQ(clip_factor(norm, norm / 4), 0.25);
  EXPECT_EQ(clip_factor(norm, 2 * norm), 1);
  EXPECT_EQ(clip_factor(norm, 0), 1);
}

TEST(TrainingTest, LearnsATextByHeartAndRecitesIt) {
  constexpr std::int32_t kPeriod = 7;
  TrainableTransformer model(kSmall, 2);
  const ParameterLayout& layout = model.layout();
  AlignedFloats parameters(layout.size());
  initialise(layout, 1, parameters);
  AlignedFloats first(layout.size());
  AlignedFloats second(layout.size());
  std::vector<std::int32_t> tokens(std::size_t{2} * 17);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * i) % kPeriod + 3;
  }
  EXPECT_NEAR(model.loss(parameters, tokens), std::log(21.0), 0.1);
  for (std::int64_t number = 1; number <= 60; ++number) {
    AlignedFloats gradient(layout.size());
    model.loss_and_gradient(parameters, tokens, gradient, 1);
    const auto scale = static_cast<float>(clip_factor(gradient_norm(gradient), 1));
    update({}, layout, {0, parameters, gradient, first, second}, {number, 0.01, scale});
  }
  EXPECT_LT(model.loss(parameters, tokens), 0.1F);

  const auto prompt = std::span<const std::int32_t>(tokens).first(9);
  const GenerateOptions greedy{.tokens = 7, .temperature = 0};
  const std::vector<std::int32_t> recited = generate(model, parameters, prompt, greedy);
  EXPECT_TRUE(std::ranges::equal(recited, std::span(tokens).subspan(9, 7)));
  GenerateOptions loose{.tokens = 40, .temperature = 5, .top_k = 3, .seed = 8};
  const std::vector<std::int32_t> text = generate(model, parameters, prompt, loose);
  EXPECT_EQ(text.size(), 40u);
  EXPECT_EQ(generate(model, parameters, prompt, loose), text);
  loose.seed = 9;
  EXPECT_NE(generate(model, parameters, prompt, loose), text);
}

TEST(SampleTokenTest, DrawsFromTheMostProbableInTheirProportions) {
  const std::vector<float> logits{1.0F, 3.0F, 2.0F, -1.0F, 3.0F};
  Rng rng(2);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < 3000; ++i) {
    ++counts[static_cast<std::size_t>(sample_token(logits, {.temperature = 0.5, .top_k = 3}, rng))];
  }
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[3], 0);
  const double other = std::exp((2.0 - 3.0) / 0.5);
  EXPECT_NEAR(counts[2], 3000 * other / (2 + other), 60);
  EXPECT_NEAR(counts[1], counts[4], 180);
  EXPECT_EQ(sample_token(logits, {.temperature = 0}, rng), 1);
}

/// Shares of 2,000 draws, of a vocabulary in which each score is once and a half the next.
std::vector<double> shares_of(const GenerateOptions& options, std::size_t vocabulary) {
  std::vector<float> logits(vocabulary);
  for (std::size_t i = 0; i < vocabulary; ++i) {
    // In no order: 7 has no factor in common with the vocabulary.
    logits[i * 7 % vocabulary] = -static_cast<float>(i) * static_cast<float>(std::log(1.5));
  }
  Rng rng(3);
  std::vector<double> shares(vocabulary);
  for (int i = 0; i < 2'000; ++i) {
    const std::int32_t token = sample_token(logits, options, rng);
    // Where 7 x rank = token.
    std::size_t rank = 0;
    while (rank * 7 % vocabulary != static_cast<std::size_t>(token)) ++rank;
    shares[rank] += 1 / 2'000.0;
  }
  return shares;
}

TEST(SampleTokenTest, DrawsFromTheWholeVocabularyInItsProportions) {
  const std::vector<double> shares = shares_of({.temperature = 1}, 300);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(shares[rank], std::pow(1.5, -static_cast<double>(rank)) / 3, 0.04) << rank;
  }
}

TEST(SampleTokenTest, DrawsFromTheFewestTokensThatHaveTheProbability) {
  // The first three have 1/3 + 2/9 + 4/27 = 0.704.
  for (const std::int64_t top_k : {0, 1000, 150}) {
    const GenerateOptions options{.temperature = 1, .top_k = top_k, .top_p = 0.7};
    const std::vector<double> shares = shares_of(options, 300);
    EXPECT_NEAR(shares[0], 9.0 / 19, 0.05);
    EXPECT_NEAR(shares[2], 4.0 / 19, 0.05);
    EXPECT_EQ(shares[3], 0);
  }
}

TEST(SampleTokenTest, FindsTheFewestTokensAlsoIfTheyAreMany) {
  std::vector<float> logits(600, 0.5F);
  Rng rng(4);
  std::int32_t last = 0;
  for (int i = 0; i < 300; ++i) {
    last = std::max(last, sample_token(logits, {.temperature = 1, .top_p = 0.5}, rng));
  }
  EXPECT_LT(last, 300) << "of equal scores the lower token counts as more probable";
  EXPECT_GT(last, 270);
}

TEST(SampleTokenTest, ReturnsATokenWhateverTheScoresAre) {
  constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits{kNothing, kNothing, kNothing};
  Rng rng(5);
  for (const double temperature : {0.0, 1.0}) {
    for (const std::int64_t top_k : {0, 2}) {
      const GenerateOptions options{.temperature = temperature, .top_k = top_k, .top_p = 0.9};
      const std::int32_t token = sample_token(logits, options, rng);
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 3);
    }
  }
}

}  // namespace
}  // namespace orrery

#include "runtime/trainer/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/trainer/lively_model_test.hpp"

namespace orrery {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

/// A reference implementation of the model, a token at a time, in doubles.
class PlainModel {
 public:
  PlainModel(const ParameterLayout& layout, std::span<const float> parameters)
      : layout_(layout), config_(layout.config()), parameters_(parameters) {}

  Rows logits(std::span<const std::int32_t> tokens) const {
    Rows stream;
    for (std::size_t i = 0; i < tokens.size(); ++i) stream.push_back(embedded(tokens[i], i));
    for (const BlockParameters& block : layout_.blocks()) {
      const Rows attended = attention(block, normed(block.attention_norm, stream));
      for (std::size_t i = 0; i < stream.size(); ++i) {
        add(stream[i], projected(block.attention_out, attended[i]));
      }
      const Rows inner = normed(block.ffn_norm, stream);
      for (std::size_t i = 0; i < stream.size(); ++i) {
        add(stream[i], projected(block.down, activated(projected(block.up, inner[i]))));
      }
    }
    Rows result;
    for (const Row& row : normed(layout_.final_norm(), stream)) {
      result.push_back(projected(layout_.head(), row));
    }
    return result;
  }

 private:
  double at(std::size_t index) const { return static_cast<double>(parameters_[index]); }
  std::size_t size(std::int64_t count) const { return static_cast<std::size_t>(count); }
  static void add(Row& row, const Row& other) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] += other[i];
  }

  Row embedded(std::int32_t token, std::size_t position) const {
    Row row(size(config_.width));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = at(layout_.token_embedding() + size(token) * row.size() + i);
      if (layout_.position_embedding()) {
        row[i] += at(*layout_.position_embedding() + position * row.size() + i);
      }
    }
    return row;
  }

  Row projected(const LinearParameters& linear, const Row& x) const {
    Row y(size(linear.out));
    for (std::size_t o = 0; o < y.size(); ++o) {
      if (linear.bias) y[o] = at(*linear.bias + o);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool in_out = linear.storage == LinearParameters::Storage::kInOut;
        y[o] += x[i] * at(linear.weight + (in_out ? i * y.size() + o : o * x.size() + i));
      }
    }
    return y;
  }

  Rows normed(const NormParameters& norm, Rows rows) const {
    const auto width = static_cast<double>(config_.width);
    for (Row& row : rows) {
      double mean = 0;
      if (norm.bias) {
        for (const double x : row) mean += x / width;
      }
      double variance = 0;
      for (const double x : row) variance += (x - mean) * (x - mean) / width;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * at(norm.weight + i);
        if (norm.bias) row[i] += at(*norm.bias + i);
      }
    }
    return rows;
  }

  Row activated(const Row& inner) const {
    Row result(size(config_.inner_width()));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double x = inner[i];
      if (config_.family == TransformerFamily::kGpt) {
        result[i] = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      } else {
        result[i] = x / (1 + std::exp(-x)) * inner[result.size() + i];
      }
    }
    return result;
  }

  Row head_of(const Row& qkv, std::int64_t head, std::size_t position) const {
    const std::size_t width = size(config_.head_width());
    Row part(qkv.begin() + head * config_.head_width(),
             qkv.begin() + (head + 1) * config_.head_width());
    const bool turns = head < config_.heads + config_.key_value_heads();
    if (config_.family == TransformerFamily::kGpt || !turns) return part;
    const Row whole = part;
    for (std::size_t i = 0; i < width / 2; ++i) {
      const double angle =
          static_cast<double>(position) *
          std::pow(config_.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      part[i] = whole[i] * std::cos(angle) - whole[i + width / 2] * std::sin(angle);
      part[i + width / 2] = whole[i + width / 2] * std::cos(angle) + whole[i] * std::sin(angle);
    }
    return part;
  }

  Rows attention(const BlockParameters& block, const Rows& rows) const {
    Rows qkv;
    for (const Row& row : rows) qkv.push_back(projected(block.qkv, row));
    Rows result(rows.size());
    for (std::int64_t head = 0; head < config_.heads; ++head) {
      const std::int64_t group = head * config_.key_value_heads() / config_.heads;
      const std::int64_t key = config_.heads + group;
      const std::int64_t value = key + config_.key_value_heads();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row query = head_of(qkv[i], head, i);
        Row mixed(query.size());
        double total = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          const Row k = head_of(qkv[j], key, j);
          double score = 0;
          for (std::size_t e = 0; e < query.size(); ++e) score += query[e] * k[e];
          const double weight = std::exp(score / std::sqrt(static_cast<double>(query.size())));
          const Row v = head_of(qkv[j], value, j);
          for (std::size_t e = 0; e < v.size(); ++e) mixed[e] += weight * v[e];
          total += weight;
        }
        for (const double x : mixed) result[i].push_back(x / total);
      }
    }
    return result;
  }

  const ParameterLayout& layout_;
  const TransformerConfig& config_;
  std::span<const float> parameters_;
};

double plain_loss(const Rows& logits, std::span<const std::int32_t> targets) {
  double loss = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double total = 0;
    for (const double x : logits[i]) total += std::exp(x);
    loss += std::log(total) - logits[i][static_cast<std::size_t>(targets[i])];
  }
  return loss / static_cast<double>(logits.size());
}

class TransformerFamilies : public testing::TestWithParam<TransformerFamily> {
 protected:
  const TransformerConfig config_ = small_transformer(GetParam());
  TrainableTransformer model_{config_, 2};
  const ParameterLayout& layout_ = model_.layout();
  AlignedFloats parameters_ = lively_parameters(layout_, 0.3);
  const std::vector<std::int32_t> tokens_ = random_tokens(config_, 2);
  const std::span<const std::int32_t> sequence_ = std::span(tokens_).last(tokens_.size() / 2);

  /// (loss(p + h d) - loss(p - h d)) / 2h without its error of second order (L. F. Richardson,
  /// 1911).
  double slope(std::span<const float> direction, std::size_t begin, double h) {
    const auto difference = [&](double step) {
      const auto loss_at = [&](double distance) {
        AlignedFloats moved = parameters_;
        for (std::size_t i = 0; i < direction.size(); ++i) {
          moved[begin + i] += static_cast<float>(distance) * direction[i];
        }
        return static_cast<double>(model_.loss(moved, sequence_));
      };
      return (loss_at(step) - loss_at(-step)) / (2 * step);
    };
    return (4 * difference(h / 2) - difference(h)) / 3;
  }
};

INSTANTIATE_TEST_SUITE_P(Trainer, TransformerFamilies,
                         testing::Values(TransformerFamily::kGpt, TransformerFamily::kLlama),
                         [](const auto& family) {
                           return family.param == TransformerFamily::kGpt ? "Gpt" : "Llama";
                         });

TEST_P(TransformerFamilies, ComputeTheLossAndTheScoresOfThePlainFormulas) {
  const PlainModel plain(layout_, parameters_);
  const auto length = static_cast<std::size_t>(config_.sequence);
  const Rows expected = plain.logits(sequence_.first(length));
  const double loss = plain_loss(expected, sequence_.subspan(1));
  EXPECT_NEAR(model_.loss(parameters_, sequence_), loss, 1e-5 * loss);
  std::vector<float> logits(static_cast<std::size_t>(config_.vocab));
  model_.logits(parameters_, sequence_.first(5), logits);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(logits[i], expected[4][i], 1e-4) << i;
  }
}

// Checks along the gradient of each tensor, which shows a wrong or surplus part, and along a random
// direction, which shows a missing one.
TEST_P(TransformerFamilies, HaveTheGradientThatFiniteDifferencesFindInEveryTensor) {
  AlignedFloats gradient(layout_.size());
  model_.loss_and_gradient(parameters_, sequence_, gradient, 1);
  Rng rng(3);
  for (const ParameterTensor& tensor : layout_.tensors()) {
    const auto exact = std::span<const float>(gradient).subspan(tensor.begin, tensor.size);
    double square = 0;
    for (const float g : exact) square += static_cast<double>(g) * static_cast<double>(g);
    const double norm = std::sqrt(square);
    ASSERT_GT(norm, 1e-4) << tensor.name;
    std::vector<float> along(tensor.size);
    std::vector<float> random(tensor.size);
    double expected = 0;
    for (std::size_t i = 0; i < tensor.size; ++i) {
      along[i] = exact[i] / static_cast<float>(norm);
      random[i] = static_cast<float>(Normal{}.sample(rng));
      expected += static_cast<double>(random[i]) * static_cast<double>(exact[i]);
    }
    const double size = static_cast<double>(tensor.size);
    EXPECT_NEAR(slope(along, tensor.begin, 0.01), norm, 2e-3 * norm + 2e-5) << tensor.name;
    EXPECT_NEAR(slope(random, tensor.begin, 0.02 / std::sqrt(size)), expected, 3e-3 * norm + 2e-4)
        << tensor.name;
  }
}

TEST_P(TransformerFamilies, GiveTheSameBitsAtOtherAddressesAndAfterOtherWork) {
  AlignedFloats gradient(layout_.size());
  const float loss = model_.loss_and_gradient(parameters_, tokens_, gradient, 0.5F);
  EXPECT_EQ(model_.loss(parameters_, tokens_), loss);
  std::vector<float> logits(static_cast<std::size_t>(config_.vocab));
  model_.logits(parameters_, std::span(tokens_).first(3), logits);

  const TrainableTransformer unused(config_, 1);
  TrainableTransformer other(config_, 3);
  AlignedFloats moved(layout_.size() + 16);
  std::ranges::copy(parameters_, moved.begin() + 16);
  AlignedFloats again(layout_.size());
  EXPECT_EQ(other.loss_and_gradient(std::span(moved).subspan(16), tokens_, again, 0.5F), loss);
  EXPECT_EQ(again, gradient);
  EXPECT_EQ(model_.loss_and_gradient(parameters_, tokens_, again, 0.5F), loss);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_NEAR(again[i], 2 * gradient[i], 1e-5 + 1e-5 * std::abs(gradient[i])) << i;
  }
}

TEST_P(TransformerFamilies, GiveTheSameBitsFromWhatIsComputedAgain) {
  TransformerConfig config = config_;
  config.layers = 3;
  TrainableTransformer keeps(config, 3);
  config.recompute = ActivationRecompute::kFull;
  TrainableTransformer repeats(config, 3);
  const ParameterLayout& layout = keeps.layout();
  const AlignedFloats parameters = lively_parameters(layout, 0.3);
  AlignedFloats gradient(layout.size());
  AlignedFloats again(layout.size());
  const float loss = keeps.loss_and_gradient(parameters, tokens_, gradient, 0.5F);
  EXPECT_EQ(repeats.loss_and_gradient(parameters, tokens_, again, 0.5F), loss);
  EXPECT_EQ(again, gradient);
  EXPECT_LT(repeats.activation_bytes(), keeps.activation_bytes());
}

// The precisions differ only by rounding.
TEST_P(TransformerFamilies, ComeOutNearlyTheSameInBfloat16) {
  TransformerConfig config = config_;
  config.precision = ProductPrecision::kBfloat16;
  if (const Status possible = check_precision(config.precision); !possible) {
    GTEST_SKIP() << possible.error().text();
  }
  TrainableTransformer rounded(config, 1);
  AlignedFloats exact(layout_.size());
  AlignedFloats gradient(layout_.size());
  const float loss = model_.loss_and_gradient(parameters_, sequence_, exact, 1);
  const float near = rounded.loss_and_gradient(parameters_, sequence_, gradient, 1);
  EXPECT_NE(near, loss);
  EXPECT_NEAR(near, loss, 0.01F * loss);
  for (const ParameterTensor& tensor : layout_.tensors()) {
    double square = 0;
    double error = 0;
    for (std::size_t i = tensor.begin; i < tensor.begin + tensor.size; ++i) {
      const auto difference = static_cast<double>(gradient[i] - exact[i]);
      error += difference * difference;
      square += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
    }
    EXPECT_LT(std::sqrt(error / square), 0.1) << tensor.name;
  }
  AlignedFloats again(layout_.size());
  EXPECT_EQ(rounded.loss_and_gradient(parameters_, sequence_, again, 1), near);
  EXPECT_EQ(again, gradient);
}

TEST(TransformerConfigTest, SaysWhatCannotBeTrained) {
  const auto message = [](const TransformerConfig& config) {
    const Status status = check(config);
    return status ? std::string() : status.error().text();
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.layers = 0, .where = {"gpt.yaml", 3, 1}}),
            "gpt.yaml:3:1: \"layers\" is 0, expected 1 to 1000");
  EXPECT_EQ(message({.width = 100}), "\"width\" is 100, expected a multiple of 16: 96 or 112");
  EXPECT_EQ(message({.width = 256, .heads = 3}),
            "\"heads\" is 3, which does not divide the width 256");
  EXPECT_EQ(
      message({.kv_heads = 2}),
      "\"kv_heads\" is for the family llama; a gpt has one key and value head for each head of "
      "queries");
  const auto llama = TransformerFamily::kLlama;
  EXPECT_EQ(message({.family = llama, .kv_heads = 3}),
            "\"kv_heads\" is 3, which does not divide 4 heads");
  EXPECT_EQ(message({.family = llama, .width = 48, .heads = 16}),
            "a head has 3 elements, expected an even number: rotary positions turn pairs");
}

TEST(ParameterLayoutTest, LaysTensorsInCacheLinesUnderTheirUsualNames) {
  for (const TransformerFamily family : {TransformerFamily::kGpt, TransformerFamily::kLlama}) {
    const ParameterLayout layout(small_transformer(family));
    std::size_t end = 0;
    for (const ParameterTensor& tensor : layout.tensors()) {
      EXPECT_EQ(tensor.begin % 16, 0u) << tensor.name;
      EXPECT_GE(tensor.begin, end) << tensor.name;
      EXPECT_LT(tensor.begin, end + 16) << tensor.name;
      EXPECT_EQ(tensor.decays, tensor.shape.size() == 2) << tensor.name;
      end = tensor.begin + tensor.size;
    }
    EXPECT_GE(layout.size(), end);
  }
  const ParameterLayout gpt(small_transformer(TransformerFamily::kGpt));
  ASSERT_NE(gpt.find("transformer.h.1.attn.c_attn.weight"), nullptr);
  EXPECT_EQ(gpt.find("transformer.h.1.attn.c_attn.weight")->shape,
            (std::vector<std::int64_t>{32, 96}));
  EXPECT_EQ(gpt.find("lm_head.weight"), nullptr);
  const ParameterLayout llama(small_transformer(TransformerFamily::kLlama));
  const ParameterTensor* key = llama.find("model.layers.0.self_attn.k_proj.weight");
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->shape, (std::vector<std::int64_t>{16, 32}));
  EXPECT_EQ(key->begin, llama.blocks()[0].qkv.weight + std::size_t{32} * 32);
}

TEST(ParameterLayoutTest, DrawsEachTensorOfItsSeedAndNameAlone) {
  const ParameterLayout layout({.layers = 2, .width = 32});
  const ParameterLayout deeper({.layers = 8, .width = 32});
  AlignedFloats parameters(layout.size());
  AlignedFloats other(deeper.size());
  initialise(layout, 5, parameters);
  initialise(deeper, 5, other);
  const auto deviation = [](const ParameterLayout& of, const AlignedFloats& values,
                            std::string_view name) {
    const ParameterTensor& tensor = *of.find(name);
    double square = 0;
    for (std::size_t i = 0; i < tensor.size; ++i) {
      const auto value = static_cast<double>(values[tensor.begin + i]);
      square += value * value / static_cast<double>(tensor.size);
    }
    return std::sqrt(square);
  };
  EXPECT_NEAR(deviation(layout, parameters, "transformer.h.1.attn.c_attn.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation(layout, parameters, "transformer.h.1.attn.c_proj.weight"), 0.01, 0.001);
  EXPECT_NEAR(deviation(deeper, other, "transformer.h.1.attn.c_proj.weight"), 0.005, 0.0005);
  EXPECT_EQ(deviation(layout, parameters, "transformer.h.1.ln_1.weight"), 1);
  EXPECT_EQ(deviation(layout, parameters, "transformer.h.1.ln_1.bias"), 0);
  const std::size_t at = layout.find("transformer.h.1.mlp.c_fc.weight")->begin;
  EXPECT_EQ(parameters[at], other[deeper.find("transformer.h.1.mlp.c_fc.weight")->begin]);
  initialise(layout, 6, other = parameters);
  EXPECT_NE(parameters[at], other[at]);
}

}  // namespace
}  // namespace orrery

#include "runtime/trainer/moe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"
#include "runtime/trainer/lively_model_test.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

using Row = std::vector<double>;

TransformerConfig with_experts(TransformerFamily family) {
  TransformerConfig config = small_transformer(family);
  config.sequence = 41;
  config.experts = 5;
  config.experts_per_token = 2;
  config.router_loss = 0.5;
  return config;
}

// --- The router ---------------------------------------------------------------------------------

ExpertRouting routed(const std::vector<float>& scores, std::int64_t experts, std::int64_t chosen) {
  ExpertRouting routing;
  const auto rows = static_cast<std::int64_t>(scores.size()) / experts;
  choose_experts({scores.data(), rows, experts, chosen}, routing);
  return routing;
}

using Numbers = std::vector<std::int64_t>;

TEST(MoeRouter, GivesEachRowToItsBestExpertsAndTiesToTheLower) {
  const ExpertRouting routing = routed({0, 2, 1, 2,     // two experts are best
                                        1, 1, 1, 1,     // all are equal
                                        -5, -5, 0, 3},  // one is best
                                       4, 2);
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{1, 3, 0, 1, 3, 2}));
  EXPECT_EQ(routing.weights[0], 0.5F);
  EXPECT_EQ(routing.weights[1], 0.5F);
  EXPECT_EQ(routing.weights[2], 0.5F);
  EXPECT_NEAR(routing.weights[4], 1 / (1 + std::exp(-3.0)), 1e-7);
  EXPECT_NEAR(routing.weights[5], 1 / (1 + std::exp(3.0)), 1e-7);
  EXPECT_EQ(routing.begin, (Numbers{0, 1, 3, 4, 6}));
  EXPECT_EQ(routing.by_expert, (Numbers{2, 0, 3, 5, 1, 4})) << "of each expert in order";
}

TEST(MoeRouter, ChoosesSomethingOfScoresThatAreNoNumbers) {
  const float none = std::nanf("");
  EXPECT_EQ(routed({none, none, none}, 3, 2).experts, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(routed({none, 1, 2}, 3, 1).experts.size(), 1u);
}

TEST(MoeRouter, IsBalancedAtOneAndAsBadAsThereAreExperts) {
  const auto balance = [](const std::vector<float>& scores, std::int64_t chosen) {
    const ExpertRouting routing = routed(scores, 3, chosen);
    const auto rows = static_cast<std::int64_t>(scores.size()) / 3;
    return balance_loss({scores.data(), rows, 3, chosen}, routing);
  };
  EXPECT_NEAR(balance({1, 0, 0, 0, 1, 0, 0, 0, 1}, 1), 1, 1e-12);
  EXPECT_NEAR(balance({50, 0, 0, 50, 0, 0}, 1), 3, 1e-6) << "all goes to one";
  EXPECT_NEAR(balance({50, 0, 0, 50, 0, 0}, 2), 1.5, 1e-6) << "half of all";
}

// --- One layer ----------------------------------------------------------------------------------

/// A reference implementation of a layer, a row at a time, in doubles.
class PlainExperts {
 public:
  PlainExperts(const TransformerConfig& config, const MoeParameters& layer)
      : config_(config), layer_(layer) {}

  /// Returns the sum of result x `wanted`, plus router_loss x the balance loss.
  double objective(const Row& parameters, const Row& x, const Row& wanted) const {
    const auto width = static_cast<std::size_t>(config_.width);
    const auto experts = static_cast<std::size_t>(config_.experts);
    Row share(experts);
    Row mean(experts);
    double sum = 0;
    const std::size_t rows = x.size() / width;
    const double counted = static_cast<double>(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const Row in(x.begin() + static_cast<std::ptrdiff_t>(row * width),
                   x.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
      Row score = projected(parameters, layer_.router, in);
      const Row probability = softmax(score);
      std::vector<std::size_t> order(experts);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return score[i]; });
      order.resize(static_cast<std::size_t>(config_.experts_per_token));
      double chosen = 0;
      for (const std::size_t expert : order) chosen += probability[expert];
      for (std::size_t i = 0; i < experts; ++i) mean[i] += probability[i] / counted;
      for (const std::size_t expert : order) {
        share[expert] += 1 / (counted * static_cast<double>(config_.experts_per_token));
        const ExpertParameters& of = layer_.experts[expert];
        const Row out = projected(parameters, of.down, activated(projected(parameters, of.up, in)));
        for (std::size_t i = 0; i < width; ++i) {
          sum += probability[expert] / chosen * out[i] * wanted[row * width + i];
        }
      }
    }
    double balance = 0;
    for (std::size_t i = 0; i < experts; ++i) balance += counted_experts() * share[i] * mean[i];
    return sum + config_.router_loss * balance;
  }

 private:
  double counted_experts() const { return static_cast<double>(config_.experts); }

  static Row softmax(const Row& scores) {
    Row result;
    double total = 0;
    for (const double score : scores) total += std::exp(score);
    for (const double score : scores) result.push_back(std::exp(score) / total);
    return result;
  }

  static Row projected(const Row& parameters, const LinearParameters& linear, const Row& x) {
    Row y(static_cast<std::size_t>(linear.out));
    const bool in_out = linear.storage == LinearParameters::Storage::kInOut;
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[o] += x[i] * parameters[linear.weight + (in_out ? i * y.size() + o : o * x.size() + i)];
      }
    }
    return y;
  }

  Row activated(const Row& inner) const {
    Row result(static_cast<std::size_t>(config_.inner_width()));
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

  const TransformerConfig& config_;
  const MoeParameters& layer_;
};

/// The first layer's experts over some rows, with all buffers that they use.
class ExpertsAtWork {
 public:
  ExpertsAtWork(const TransformerConfig& config, std::int64_t rows)
      : layout_(config),
        rows_(rows),
        moe_(layout_, rows, products_),
        scores_(size(config.experts)),
        inner_(size(config.experts_per_token * layout_.blocks()[0].up.out)),
        activation_(size(config.experts_per_token * layout_.blocks()[0].down.in)),
        gathered_(size(config.width)),
        inner_gradient_(size(layout_.blocks()[0].up.out)),
        activation_gradient_(size(layout_.blocks()[0].down.in)) {}

  const ParameterLayout& layout() const { return layout_; }
  const MoeParameters& layer() const { return layout_.blocks()[0].moe; }

  AlignedFloats result(std::span<const float> parameters, std::span<const float> x) {
    AlignedFloats out(x.size());
    moe_.forward(rows_of(parameters, x));
    moe_.add_result(rows_of(parameters, x), out.data());
    return out;
  }
  /// Returns the gradients of the parameters and of x. Precondition: result() of the same rows was
  /// called before.
  std::pair<AlignedFloats, AlignedFloats> gradients(std::span<const float> parameters,
                                                    std::span<const float> x,
                                                    std::span<const float> out) {
    std::pair<AlignedFloats, AlignedFloats> found{parameters.size(), x.size()};
    const MoeGradient gradient{.out = out.data(),
                               .x = found.second.data(),
                               .inner = inner_gradient_.data(),
                               .activation = activation_gradient_.data(),
                               .parameters = found.first.data()};
    moe_.experts_backward(rows_of(parameters, x), gradient);
    moe_.router_backward(rows_of(parameters, x), gradient);
    return found;
  }
  double balance() { return moe_.balance(scores_.data(), rows_); }

 private:
  std::size_t size(std::int64_t width) const { return static_cast<std::size_t>(rows_ * width); }
  MoeRows rows_of(std::span<const float> parameters, std::span<const float> x) {
    return {.parameters = parameters.data(),
            .layer = layer(),
            .count = rows_,
            .x = x.data(),
            .scores = scores_.data(),
            .inner = inner_.data(),
            .activation = activation_.data(),
            .gathered = gathered_.data()};
  }

  ParameterLayout layout_;
  std::int64_t rows_;
  MatrixMultiplier products_{ProductPrecision::kFloat32};
  MixtureOfExperts moe_;
  AlignedFloats scores_;
  AlignedFloats inner_;
  AlignedFloats activation_;
  AlignedFloats gathered_;
  AlignedFloats inner_gradient_;
  AlignedFloats activation_gradient_;
};

AlignedFloats normal_rows(std::size_t size, std::uint64_t seed) {
  AlignedFloats rows(size);
  Rng rng(seed);
  for (float& each : rows) each = static_cast<float>(Normal{}.sample(rng));
  return rows;
}

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

class MoeFamilies : public testing::TestWithParam<TransformerFamily> {
 protected:
  static constexpr std::int64_t kRows = 17;
  TransformerConfig config_ = with_experts(GetParam());
  const std::size_t size_ = static_cast<std::size_t>(kRows * config_.width);

  /// Compares objective and gradients of the layer with those of PlainExperts, whose finite
  /// differences are exact enough in doubles.
  void compare(std::span<const float> parameters, std::span<const float> x) {
    ExpertsAtWork work(config_, kRows);
    const AlignedFloats wanted = normal_rows(size_, 6);
    const PlainExperts plain(config_, work.layer());
    Row at(parameters.begin(), parameters.end());
    Row rows(x.begin(), x.end());
    const Row weights(wanted.begin(), wanted.end());
    const double expected = plain.objective(at, rows, weights);
    const double found = product(work.result(parameters, x), wanted);
    EXPECT_NEAR(found + config_.router_loss * work.balance(), expected,
                1e-4 + 1e-5 * std::abs(expected));
    const auto [of_parameters, of_x] = work.gradients(parameters, x, wanted);
    const auto slope = [&](double& moved) {
      const double before = moved;
      const auto objective_at = [&](double value) {
        moved = value;
        return plain.objective(at, rows, weights);
      };
      const double difference = objective_at(before + 1e-5) - objective_at(before - 1e-5);
      moved = before;
      return difference / 2e-5;
    };
    Rng rng(8);
    for (const ParameterTensor& tensor : work.layout().tensors()) {
      if (!is_of_layer(work.layer(), tensor)) continue;
      for (int i = 0; i < 6; ++i) {
        const std::size_t index = tensor.begin + rng.below(tensor.size);
        EXPECT_NEAR(of_parameters[index], slope(at[index]), 1e-4) << tensor.name;
      }
    }
    for (int i = 0; i < 16; ++i) {
      const std::size_t index = rng.below(size_);
      EXPECT_NEAR(of_x[index], slope(rows[index]), 1e-4);
    }
  }

  static bool is_of_layer(const MoeParameters& layer, const ParameterTensor& tensor) {
    const LinearParameters& last = layer.experts.back().down;
    return tensor.begin >= layer.router.weight && tensor.begin <= last.weight;
  }
};

INSTANTIATE_TEST_SUITE_P(Trainer, MoeFamilies,
                         testing::Values(TransformerFamily::kGpt, TransformerFamily::kLlama),
                         [](const auto& family) {
                           return family.param == TransformerFamily::kGpt ? "Gpt" : "Llama";
                         });

TEST_P(MoeFamilies, ComputeResultAndGradientOfThePlainFormulas) {
  const ParameterLayout layout(config_);
  compare(lively_parameters(layout, 0.3), normal_rows(size_, 5));
}

TEST_P(MoeFamilies, ComputeThemForOneExpertARow) {
  config_.experts_per_token = 1;
  compare(lively_parameters(ParameterLayout(config_), 0.3), normal_rows(size_, 5));
}

TEST_P(MoeFamilies, ComputeThemWhenEveryRowHasAllExperts) {
  config_.experts_per_token = config_.experts;
  compare(lively_parameters(ParameterLayout(config_), 0.3), normal_rows(size_, 5));
}

// The first element of each row decides its expert.
TEST_P(MoeFamilies, ComputeThemWhenAnExpertHasAllRowsAndOthersNone) {
  config_.experts_per_token = 1;
  config_.experts = 3;
  const ParameterLayout layout(config_);
  AlignedFloats parameters = lively_parameters(layout, 0.1);
  const std::size_t router = layout.blocks()[0].moe.router.weight;
  const auto width = static_cast<std::size_t>(config_.width);
  for (std::size_t expert = 0; expert < 3; ++expert) {
    parameters[router + expert * width] = expert == 1 ? 1.0F : -1.0F;
  }
  AlignedFloats x = normal_rows(size_, 5);
  for (std::size_t at = 0; at < x.size(); at += width) x[at] = 3;
  compare(parameters, x);
  ExpertsAtWork work(config_, kRows);
  (void)work.result(parameters, x);
  const auto [gradient, of_x] = work.gradients(parameters, x, normal_rows(size_, 6));
  const auto length = [&](const LinearParameters& linear) {
    const auto part = std::span<const float>(gradient).subspan(
        linear.weight, static_cast<std::size_t>(linear.in * linear.out));
    return product(part, part);
  };
  EXPECT_EQ(length(work.layer().experts[0].down), 0);
  EXPECT_GT(length(work.layer().experts[1].down), 0);
  EXPECT_EQ(length(work.layer().experts[2].up), 0);
}

// --- The whole model ----------------------------------------------------------------------------

/// Copies the dense model's feed-forward weights into every expert, and all other tensors by name.
AlignedFloats with_copies(const ParameterLayout& to, const ParameterLayout& dense,
                          std::span<const float> parameters) {
  AlignedFloats copied = lively_parameters(to, 0.3);
  const auto copy = [&](std::size_t from, std::size_t at, std::int64_t count) {
    std::copy_n(parameters.begin() + static_cast<std::ptrdiff_t>(from), count,
                copied.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (const ParameterTensor& tensor : to.tensors()) {
    const ParameterTensor* same = dense.find(tensor.name);
    if (same == nullptr) continue;
    copy(same->begin, tensor.begin, static_cast<std::int64_t>(tensor.size));
  }
  for (std::size_t layer = 0; layer < to.blocks().size(); ++layer) {
    const BlockParameters& from = dense.blocks()[layer];
    for (const ExpertParameters& expert : to.blocks()[layer].moe.experts) {
      copy(from.up.weight, expert.up.weight, from.up.in * from.up.out);
      copy(from.down.weight, expert.down.weight, from.down.in * from.down.out);
    }
  }
  return copied;
}

TEST_P(MoeFamilies, WithCopiesOfOneExpertAreTheModelWithoutExperts) {
  TransformerConfig plain = config_;
  plain.experts = 0;
  config_.router_loss = 0;
  TrainableTransformer dense(plain, 2);
  TrainableTransformer model(config_, 2);
  AlignedFloats parameters = lively_parameters(dense.layout(), 0.3);
  for (const BlockParameters& block : dense.layout().blocks()) {
    if (!block.up.bias) continue;
    for (const LinearParameters* linear : {&block.up, &block.down}) {
      std::fill_n(parameters.begin() + static_cast<std::ptrdiff_t>(*linear->bias), linear->out,
                  0.0F);
    }
  }
  const AlignedFloats copied = with_copies(model.layout(), dense.layout(), parameters);
  const std::vector<std::int32_t> tokens = random_tokens(config_, 2);
  AlignedFloats expected(dense.layout().size());
  AlignedFloats found(model.layout().size());
  const float loss = dense.loss_and_gradient(parameters, tokens, expected, 1);
  EXPECT_NEAR(model.loss_and_gradient(copied, tokens, found, 1), loss, 1e-5F * loss);
  const auto near = [&](std::size_t at, double is, const std::string& name) {
    ASSERT_NEAR(is, expected[at], 2e-5 + 1e-4 * std::abs(expected[at])) << name;
  };
  for (const ParameterTensor& tensor : model.layout().tensors()) {
    const ParameterTensor* same = dense.layout().find(tensor.name);
    if (same == nullptr) continue;
    for (std::size_t i = 0; i < tensor.size; ++i) {
      near(same->begin + i, static_cast<double>(found[tensor.begin + i]), tensor.name);
    }
  }
  for (std::size_t layer = 0; layer < dense.layout().blocks().size(); ++layer) {
    const LinearParameters& down = dense.layout().blocks()[layer].down;
    for (std::size_t i = 0; i < static_cast<std::size_t>(down.in * down.out); ++i) {
      double sum = 0;
      for (const ExpertParameters& expert : model.layout().blocks()[layer].moe.experts) {
        sum += static_cast<double>(found[expert.down.weight + i]);
      }
      near(down.weight + i, sum, "down");
    }
  }
}

// If every row has all experts, no step changes a choice.
TEST_P(MoeFamilies, HaveTheGradientThatFiniteDifferencesFindInEveryTensor) {
  config_.experts_per_token = config_.experts;
  TrainableTransformer model(config_, 1);
  const ParameterLayout& layout = model.layout();
  const AlignedFloats parameters = lively_parameters(layout, 0.3);
  const std::vector<std::int32_t> tokens = random_tokens(config_, 1);
  AlignedFloats gradient(layout.size());
  model.loss_and_gradient(parameters, tokens, gradient, 1);
  for (const ParameterTensor& tensor : layout.tensors()) {
    const auto exact = std::span<const float>(gradient).subspan(tensor.begin, tensor.size);
    const double norm = std::sqrt(product(exact, exact));
    ASSERT_GT(norm, 1e-4) << tensor.name;
    const auto objective_at = [&](double distance) {
      AlignedFloats moved = parameters;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        moved[tensor.begin + i] += static_cast<float>(distance / norm) * exact[i];
      }
      const auto loss = static_cast<double>(model.loss(moved, tokens));
      return loss + config_.router_loss * model.router_loss();
    };
    const auto difference = [&](double step) {
      return (objective_at(step) - objective_at(-step)) / (2 * step);
    };
    // Richardson extrapolation removes the second-order error.
    const double slope = (4 * difference(0.005) - difference(0.01)) / 3;
    EXPECT_NEAR(slope, norm, 2e-3 * norm + 2e-5) << tensor.name;
  }
}

TEST_P(MoeFamilies, GiveTheSameBitsAfterOtherWorkAndFromWhatIsComputedAgain) {
  TransformerConfig again = config_;
  again.recompute = ActivationRecompute::kFull;
  TrainableTransformer keeps(config_, 3);
  TrainableTransformer repeats(again, 2);
  const AlignedFloats parameters = lively_parameters(keeps.layout(), 0.3);
  const std::vector<std::int32_t> tokens = random_tokens(config_, 2);
  AlignedFloats gradient(keeps.layout().size());
  AlignedFloats other(gradient.size());
  AlignedFloats third(gradient.size());
  const float loss = keeps.loss_and_gradient(parameters, tokens, gradient, 0.5F);
  const double balance = keeps.router_loss();
  EXPECT_GE(balance, 1.0) << "of two layers";
  EXPECT_EQ(repeats.loss_and_gradient(parameters, tokens, other, 0.5F), loss);
  EXPECT_EQ(other, gradient);
  EXPECT_EQ(repeats.router_loss(), balance);
  EXPECT_EQ(keeps.loss(parameters, std::span(tokens).first(tokens.size() / 2)),
            repeats.loss(parameters, std::span(tokens).first(tokens.size() / 2)));
  EXPECT_EQ(keeps.loss_and_gradient(parameters, tokens, third, 0.5F), loss);
  EXPECT_EQ(third, gradient);
  EXPECT_LT(TrainableTransformer::activation_bytes(again, 2, {}, 1),
            TrainableTransformer::activation_bytes(config_, 2, {}, 1));
}

TEST_P(MoeFamilies, ComeOutNearlyTheSameInBfloat16) {
  TransformerConfig rounded = config_;
  rounded.precision = ProductPrecision::kBfloat16;
  if (const Status possible = check_precision(rounded.precision); !possible) {
    GTEST_SKIP() << possible.error().text();
  }
  TrainableTransformer exact(config_, 1);
  TrainableTransformer model(rounded, 1);
  const AlignedFloats parameters = lively_parameters(exact.layout(), 0.1);
  const std::vector<std::int32_t> tokens = random_tokens(config_, 1);
  AlignedFloats gradient(exact.layout().size());
  const float loss = model.loss_and_gradient(parameters, tokens, gradient, 1);
  EXPECT_NEAR(loss, exact.loss(parameters, tokens), 0.01F * loss);
  AlignedFloats again(gradient.size());
  EXPECT_EQ(model.loss_and_gradient(parameters, tokens, again, 1), loss);
  EXPECT_EQ(again, gradient);
}

TEST(MoeLayout, HasRoomForTheWorstThatARouterMayDo) {
  TransformerConfig config = with_experts(TransformerFamily::kLlama);
  config.kv_heads = 4;
  config.experts = 4;
  config.experts_per_token = 3;
  const ParameterLayout whole(config);
  EXPECT_EQ(rows_of_experts(whole, 41), 3 * 41);
  EXPECT_EQ(rows_of_experts(ParameterLayout(config, {.tensor_ranks = 2, .expert_ranks = 2}), 41),
            2 * 41);
  EXPECT_EQ(rows_of_experts(ParameterLayout(config, {.tensor_ranks = 4, .expert_ranks = 4}), 41),
            41);
  EXPECT_EQ(rows_of_expert(config, 41), 41);
  config.precision = ProductPrecision::kBfloat16;
  EXPECT_EQ(rows_of_expert(config, 41), 48);
  EXPECT_EQ(rows_of_experts(ParameterLayout(config), 41), 3 * 41 + 4 * 15);
}

TEST(MoeLayout, HasTheNamesOfMixtralAndCountsWhatATokenIsMultipliedWith) {
  const TransformerConfig config = with_experts(TransformerFamily::kLlama);
  const ParameterLayout layout(config);
  const std::string prefix = "model.layers.1.block_sparse_moe.";
  const auto shape_of = [&](const std::string& name) {
    const ParameterTensor* tensor = layout.find(prefix + name + ".weight");
    return tensor == nullptr ? Numbers{} : tensor->shape;
  };
  EXPECT_EQ(shape_of("gate"), (Numbers{5, 32}));
  EXPECT_EQ(shape_of("experts.4.w1"), (Numbers{48, 32}));
  EXPECT_EQ(shape_of("experts.4.w2"), (Numbers{32, 48}));
  EXPECT_EQ(shape_of("experts.4.w3"), (Numbers{48, 32}));
  EXPECT_EQ(layout.find("model.layers.1.mlp.gate_proj.weight"), nullptr);
  const ParameterLayout gpt(with_experts(TransformerFamily::kGpt));
  EXPECT_NE(gpt.find("transformer.h.0.moe.experts.0.c_proj.weight"), nullptr);
  EXPECT_EQ(gpt.find("transformer.h.0.mlp.c_proj.weight"), nullptr);
  TransformerConfig plain = config;
  plain.experts = 0;
  const double once = operations_per_token(ParameterLayout(plain));
  const double ffn = 6.0 * 2 * 3 * 32 * 48;
  const double router = 6.0 * 2 * 32 * 5;
  EXPECT_EQ(operations_per_token(ParameterLayout(config)), once + ffn + router);
}

TEST(MoeConfig, SaysWhatCannotBeTrained) {
  const auto message = [](const TransformerConfig& config) {
    const Status status = check(config);
    return status ? std::string() : status.error().text();
  };
  EXPECT_EQ(message({.experts = 8}), "");
  EXPECT_EQ(message({.experts = 2, .experts_per_token = 3}),
            "\"experts_per_token\" is 3, expected 1 to 2");
  EXPECT_EQ(message({.experts = -1}), "\"experts\" is -1, expected 0 to 1024");
  EXPECT_EQ(message({.experts = 2, .router_loss = -1}),
            "\"router_loss\" is -1, expected 0 to 1000");
}

}  // namespace
}  // namespace orrery

#include "runtime/trainer/moe.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr auto kTransposed = MatrixOperand::Order::kTransposed;
constexpr std::size_t kLanes = 16;
constexpr std::int64_t kBfloat16Rows = 16;  // rows of an expert are a multiple of it

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

/// Computes e^(score - best score) for a row; returns their sum.
double exponentials(std::span<const float> scores, std::span<double> out) {
  const auto best = static_cast<double>(*std::ranges::max_element(scores));
  double total = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    out[i] = math::exp(static_cast<double>(scores[i]) - best);
    total += out[i];
  }
  return total;
}

std::span<const float> row_of(const RouterScores& of, std::int64_t row) {
  return {of.scores + row * of.experts, index(of.experts)};
}

/// Returns the best expert that is not taken yet; a NaN score is never better.
std::int32_t best_of(std::span<const float> scores, std::span<const std::int32_t> taken) {
  std::int32_t best = -1;
  for (std::int32_t expert = 0; expert < static_cast<std::int32_t>(scores.size()); ++expert) {
    if (std::ranges::find(taken, expert) != taken.end()) continue;
    if (best < 0 || scores[index(expert)] > scores[index(best)]) best = expert;
  }
  return best;
}

void group_by_expert(std::int64_t experts, ExpertRouting& routing) {
  routing.begin.assign(index(experts) + 1, 0);
  for (const std::int32_t expert : routing.experts) ++routing.begin[index(expert) + 1];
  for (std::size_t i = 1; i < routing.begin.size(); ++i) routing.begin[i] += routing.begin[i - 1];
  std::vector<std::int64_t> next = routing.begin;
  routing.by_expert.resize(routing.experts.size());
  for (std::size_t place = 0; place < routing.experts.size(); ++place) {
    std::int64_t& at = next[index(routing.experts[place])];
    routing.by_expert[index(at++)] = static_cast<std::int64_t>(place);
  }
}

void scale_row(float* row, std::int64_t width, float by) {
  for (std::int64_t i = 0; i < width; ++i) row[i] *= by;
}

/// Sums in lanes of a fixed order. Precondition: `count` is a multiple of 16.
float dot(const float* a, const float* b, std::int64_t count) {
  std::array<float, kLanes> lanes{};
  for (const float* end = a + count; a != end; a += kLanes, b += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[lane] * b[lane];
  }
  for (std::size_t step = kLanes / 2; step > 0; step /= 2) {
    for (std::size_t lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
  }
  return lanes[0];
}

bool in_out(const LinearParameters& linear) {
  return linear.storage == LinearParameters::Storage::kInOut;
}

}  // namespace

void choose_experts(const RouterScores& of, ExpertRouting& routing) {
  routing.experts.resize(index(of.rows * of.chosen));
  routing.weights.resize(routing.experts.size());
  std::vector<double> powers(index(of.experts));
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const std::span<const float> scores = row_of(of, row);
    const auto chosen =
        std::span(routing.experts).subspan(index(row * of.chosen), index(of.chosen));
    (void)exponentials(scores, powers);
    double total = 0;
    for (std::size_t choice = 0; choice < chosen.size(); ++choice) {
      chosen[choice] = best_of(scores, chosen.first(choice));
      total += powers[index(chosen[choice])];
    }
    for (std::size_t choice = 0; choice < chosen.size(); ++choice) {
      routing.weights[index(row * of.chosen) + choice] =
          static_cast<float>(powers[index(chosen[choice])] / total);
    }
  }
  group_by_expert(of.experts, routing);
}

double balance_loss(const RouterScores& of, const ExpertRouting& routing) {
  std::vector<double> powers(index(of.experts));
  std::vector<double> probability(powers.size());
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const double total = exponentials(row_of(of, row), powers);
    for (std::size_t i = 0; i < powers.size(); ++i) probability[i] += powers[i] / total;
  }
  double sum = 0;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    sum += static_cast<double>(routing.begin[i + 1] - routing.begin[i]) * probability[i];
  }
  const auto rows = static_cast<double>(of.rows);
  return static_cast<double>(of.experts) * sum / (rows * rows * static_cast<double>(of.chosen));
}

std::int64_t rows_of_expert(const TransformerConfig& config, std::int64_t rows) {
  if (config.precision == ProductPrecision::kFloat32) return rows;
  return (rows + kBfloat16Rows - 1) / kBfloat16Rows * kBfloat16Rows;
}

std::int64_t rows_of_experts(const ParameterLayout& layout, std::int64_t rows) {
  const TransformerConfig& config = layout.config();
  const std::int64_t here = config.experts / layout.part().expert_ranks;
  const std::int64_t most = rows * std::min(config.experts_per_token, here);
  // Each expert's rows may be padded from one row to a multiple.
  return most + here * (rows_of_expert(config, 1) - 1);
}

MixtureOfExperts::MixtureOfExperts(const ParameterLayout& layout, std::int64_t rows,
                                   MatrixMultiplier& products)
    : kernels_(kernels()),
      config_(layout.config()),
      products_(products),
      choice_gradient_(index(rows * config_.experts_per_token)),
      score_gradient_(index(rows * config_.experts)) {
  ORRERY_ASSERT(config_.experts > 0, "there are experts");
}

RouterScores MixtureOfExperts::scores_of(const float* scores, std::int64_t rows) const {
  return {scores, rows, config_.experts, config_.experts_per_token};
}

double MixtureOfExperts::balance(const float* scores, std::int64_t rows) {
  choose_experts(scores_of(scores, rows), routing_);
  return balance_loss(scores_of(scores, rows), routing_);
}

std::span<float> MixtureOfExperts::choice_gradient(const MoeRows& rows) {
  return std::span(choice_gradient_).first(index(rows.count * config_.experts_per_token));
}

// The rows of the experts are stored one after another. An expert without rows is left out.
std::vector<MixtureOfExperts::Group> MixtureOfExperts::groups_of(const MoeRows& rows) const {
  std::vector<Group> groups;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < rows.layer.experts.size(); ++i) {
    const ExpertParameters& expert = rows.layer.experts[i];
    const std::int64_t begin = routing_.begin[rows.layer.first + i];
    const std::int64_t count = routing_.begin[rows.layer.first + i + 1] - begin;
    if (count == 0) continue;
    groups.push_back({.expert = expert,
                      .places = std::span(routing_.by_expert).subspan(index(begin), index(count)),
                      .rows = rows_of_expert(config_, count),
                      .inner = rows.inner + before * expert.up.out,
                      .activation = rows.activation + before * expert.down.in});
    before += groups.back().rows;
  }
  return groups;
}

void MixtureOfExperts::gather(const Group& group, const float* x, float* to) const {
  for (const std::int64_t place : group.places) {
    const float* row = x + place / config_.experts_per_token * config_.width;
    to = std::copy_n(row, config_.width, to);
  }
  const std::int64_t none = group.rows - static_cast<std::int64_t>(group.places.size());
  std::fill_n(to, none * config_.width, 0.0F);
}

void MixtureOfExperts::scatter(const Group& group, const float* from, float* to) const {
  for (const std::int64_t place : group.places) {
    float* row = to + place / config_.experts_per_token * config_.width;
    kernels_.sum_rows({.x = from, .rows = 1, .width = config_.width, .out = row});
    from += config_.width;
  }
}

void MixtureOfExperts::activate(const Group& group) const {
  const std::int64_t width = group.expert.down.in;
  if (config_.family == TransformerFamily::kGpt) {
    kernels_.gelu(group.inner, group.rows * width, group.activation);
  } else {
    kernels_.swiglu({.gate_and_value = group.inner,
                     .rows = group.rows,
                     .width = width,
                     .out = group.activation});
  }
}

void MixtureOfExperts::forward(const MoeRows& rows) {
  const LinearParameters& router = rows.layer.router;
  orrery::multiply({.rows = rows.count,
                    .columns = router.out,
                    .inner = router.in,
                    .a = {rows.x, router.in},
                    .b = {rows.parameters + router.weight, router.in, kTransposed},
                    .c = rows.scores,
                    .c_stride = router.out});
  choose_experts(scores_of(rows.scores, rows.count), routing_);
  for (const Group& group : groups_of(rows)) {
    gather(group, rows.x, rows.gathered);
    const LinearParameters& up = group.expert.up;
    multiply(up, {.rows = group.rows,
                  .a = {rows.gathered, up.in},
                  .b = {rows.parameters + up.weight},
                  .c = group.inner});
    activate(group);
  }
}

void MixtureOfExperts::add_result(const MoeRows& rows, float* out) {
  for (const Group& group : groups_of(rows)) {
    const LinearParameters& down = group.expert.down;
    multiply(down, {.rows = group.rows,
                    .a = {group.activation, down.in},
                    .b = {rows.parameters + down.weight},
                    .c = rows.gathered});
    float* result = rows.gathered;
    for (const std::int64_t place : group.places) {
      scale_row(result, config_.width, routing_.weights[index(place)]);
      result += config_.width;
    }
    scatter(group, rows.gathered, out);
  }
}

void MixtureOfExperts::experts_backward(const MoeRows& rows, const MoeGradient& gradient) {
  choose_experts(scores_of(rows.scores, rows.count), routing_);
  std::ranges::fill(choice_gradient(rows), 0.0F);
  std::fill_n(gradient.x, rows.count * config_.width, 0.0F);
  for (const Group& group : groups_of(rows)) expert_backward(rows, gradient, group);
}

void MixtureOfExperts::expert_backward(const MoeRows& rows, const MoeGradient& gradient,
                                       const Group& group) {
  const auto& [up, down] = group.expert;
  weigh(rows, gradient, group);
  add_weight_gradient(down, {.inner = group.rows,
                             .a = {group.activation, down.in},
                             .b = {rows.gathered, down.out},
                             .c = gradient.parameters + down.weight});
  const float* inner_gradient = activate_backward(group, gradient);
  gather(group, rows.x, rows.gathered);
  add_weight_gradient(up, {.inner = group.rows,
                           .a = {rows.gathered, up.in},
                           .b = {inner_gradient, up.out},
                           .c = gradient.parameters + up.weight});
  multiply_back(up, {.rows = group.rows,
                     .a = {inner_gradient, up.out},
                     .b = {rows.parameters + up.weight},
                     .c = rows.gathered});
  scatter(group, rows.gathered, gradient.x);
}

/// Writes the gradients of the expert's results to rows.gathered, those of its activations to
/// gradient.activation, and those of the choices' weights: the gradient of w in y = w (a W) is (a
/// W) dy = a (dy W^T), where dy W^T is needed anyway.
void MixtureOfExperts::weigh(const MoeRows& rows, const MoeGradient& gradient, const Group& group) {
  const LinearParameters& down = group.expert.down;
  gather(group, gradient.out, rows.gathered);
  multiply_back(down, {.rows = group.rows,
                       .a = {rows.gathered, down.out},
                       .b = {rows.parameters + down.weight},
                       .c = gradient.activation});
  const auto count = static_cast<std::int64_t>(group.places.size());
  for (std::int64_t row = 0; row < count; ++row) {
    const std::size_t place = index(group.places[index(row)]);
    float* own = gradient.activation + row * down.in;
    choice_gradient_[place] = dot(group.activation + row * down.in, own, down.in);
    scale_row(own, down.in, routing_.weights[place]);
    scale_row(rows.gathered + row * down.out, down.out, routing_.weights[place]);
  }
}

/// Returns the gradient of group.inner.
const float* MixtureOfExperts::activate_backward(const Group& group, const MoeGradient& gradient) {
  const std::int64_t width = group.expert.down.in;
  if (config_.family == TransformerFamily::kGpt) {
    kernels_.gelu_backward(group.inner, group.rows * width, gradient.activation);
    return gradient.activation;
  }
  kernels_.swiglu_backward({.gate_and_value = group.inner,
                            .rows = group.rows,
                            .width = width,
                            .out_gradient = gradient.activation,
                            .gradient = gradient.inner});
  return gradient.inner;
}

/// The gradient of a softmax's scores is p (g - sum(p g)) for results p with gradients g: once over
/// the chosen experts, and once over all for the balance loss, whose g is experts x (an expert's
/// share of the choices) / rows.
void MixtureOfExperts::score_gradients(const MoeRows& rows, float loss_scale) {
  const RouterScores of = scores_of(rows.scores, rows.count);
  const auto count = static_cast<double>(of.rows);
  const double scale = config_.router_loss * static_cast<double>(loss_scale) *
                       static_cast<double>(of.experts) /
                       (count * count * static_cast<double>(of.chosen));
  std::vector<double> probability(index(of.experts));
  const auto balance = [&](std::size_t expert) {
    return scale * static_cast<double>(routing_.begin[expert + 1] - routing_.begin[expert]);
  };
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const double total = exponentials(row_of(of, row), probability);
    double along = 0;
    for (std::size_t i = 0; i < probability.size(); ++i) {
      probability[i] /= total;
      along += probability[i] * balance(i);
    }
    float* out = score_gradient_.data() + row * of.experts;
    for (std::size_t i = 0; i < probability.size(); ++i) {
      out[i] = static_cast<float>(probability[i] * (balance(i) - along));
    }
    float weighed = 0;
    const std::size_t first = index(row * of.chosen);
    for (std::size_t place = first; place < first + index(of.chosen); ++place) {
      weighed += routing_.weights[place] * choice_gradient_[place];
    }
    for (std::size_t place = first; place < first + index(of.chosen); ++place) {
      out[routing_.experts[place]] += routing_.weights[place] * (choice_gradient_[place] - weighed);
    }
  }
}

void MixtureOfExperts::router_backward(const MoeRows& rows, const MoeGradient& gradient) {
  const LinearParameters& router = rows.layer.router;
  score_gradients(rows, gradient.loss_scale);
  orrery::multiply({.rows = router.out,
                    .columns = router.in,
                    .inner = rows.count,
                    .a = {score_gradient_.data(), router.out, kTransposed},
                    .b = {rows.x, router.in},
                    .c = gradient.parameters + router.weight,
                    .c_stride = router.in,
                    .beta = 1});
  if (gradient.x == nullptr) return;
  orrery::multiply({.rows = rows.count,
                    .columns = router.in,
                    .inner = router.out,
                    .a = {score_gradient_.data(), router.out},
                    .b = {rows.parameters + router.weight, router.in},
                    .c = gradient.x,
                    .c_stride = router.in,
                    .beta = 1});
}

/// Computes c = a W. Given: rows, a, and the addresses of b and c.
void MixtureOfExperts::multiply(const LinearParameters& linear, FloatProduct product) {
  product.columns = linear.out;
  product.inner = linear.in;
  product.c_stride = linear.out;
  product.b.stride = in_out(linear) ? linear.out : linear.in;
  if (!in_out(linear)) product.b.order = kTransposed;
  products_.multiply(product);
}

/// Computes c = a W^T. Given: rows, a, and the addresses of b and c.
void MixtureOfExperts::multiply_back(const LinearParameters& linear, FloatProduct product) {
  product.columns = linear.in;
  product.inner = linear.out;
  product.c_stride = linear.in;
  product.b.stride = in_out(linear) ? linear.out : linear.in;
  if (in_out(linear)) product.b.order = kTransposed;
  products_.multiply(product);
}

/// Computes c += a^T b, or its transpose if W is stored transposed. Given: inner, a (the input), b
/// (the gradient of the output), and the address of c.
void MixtureOfExperts::add_weight_gradient(const LinearParameters& linear, FloatProduct product) {
  if (!in_out(linear)) std::swap(product.a, product.b);
  product.a.order = kTransposed;
  product.rows = product.a.stride;
  product.columns = product.b.stride;
  product.c_stride = product.columns;
  product.beta = 1;
  products_.multiply(product);
}

}  // namespace orrery

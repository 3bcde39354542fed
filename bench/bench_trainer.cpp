// How fast the reference trainer trains, one thread, beside what the same matrix products would
// take at the pace of one large product in the same run.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "bench/figure.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/gemm.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

constexpr int kRounds = 12;
constexpr double kPeakShare = 0.65;

struct Subject {
  std::string name;
  TransformerConfig config;
  std::int64_t sequences = 0;
};

/// Operations a second of a product of 1024 x 1024 matrices.
class PeakProduct {
 public:
  PeakProduct() : matrices_(3 * kSize * kSize) {
    Rng rng(1);
    for (float& value : matrices_) value = static_cast<float>(rng.uniform());
  }

  double measure() {
    const float* a = matrices_.data();
    const double seconds = seconds_of([&] {
      multiply({.rows = kSize,
                .columns = kSize,
                .inner = kSize,
                .a = {a, kSize},
                .b = {a + kSize * kSize, kSize},
                .c = matrices_.data() + 2 * kSize * kSize,
                .c_stride = kSize});
    });
    return 2.0 * kSize * kSize * kSize / seconds;
  }

 private:
  static constexpr std::int64_t kSize = 1024;
  AlignedFloats matrices_;
};

/// A model in training on random bytes.
class Training {
 public:
  explicit Training(const Subject& subject)
      : model_(subject.config, subject.sequences),
        parameters_(model_.layout().size()),
        gradient_(parameters_.size()),
        first_(parameters_.size()),
        second_(parameters_.size()),
        tokens_(static_cast<std::size_t>(subject.sequences * (subject.config.sequence + 1))) {
    initialise(model_.layout(), 1, parameters_);
    Rng rng(2);
    const auto vocab = static_cast<std::uint64_t>(subject.config.vocab);
    for (std::int32_t& token : tokens_) token = static_cast<std::int32_t>(rng.below(vocab));
  }

  const TrainableTransformer& model() const { return model_; }

  void step() {
    std::ranges::fill(gradient_, 0.0F);
    model_.loss_and_gradient(parameters_, tokens_, gradient_, 1);
    const auto scale = static_cast<float>(clip_factor(gradient_norm(gradient_), 1));
    update({}, model_.layout(), {0, parameters_, gradient_, first_, second_},
           {++steps_, 1e-4, scale});
  }

 private:
  TrainableTransformer model_;
  AlignedFloats parameters_;
  AlignedFloats gradient_;
  AlignedFloats first_;
  AlignedFloats second_;
  std::vector<std::int32_t> tokens_;
  std::int64_t steps_ = 0;
};

// Peak and step take turns, so that a busy neighbour slows both; the best of each counts.
void measure(const Subject& subject) {
  PeakProduct product;
  Training training(subject);
  double peak = 0;
  double seconds = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    peak = std::max(peak, product.measure());
    seconds = std::min(seconds, seconds_of([&] { training.step(); }));
  }
  const auto tokens = static_cast<double>(subject.sequences * subject.config.sequence);
  const double at_peak = training.model().operations_per_token() / peak;
  const auto millions = static_cast<double>(training.model().layout().trained()) * 1e-6;
  print_figure(
      {.bench = "trainer",
       .name = fmt::format("{}, {:.1f} M weights, time of a token trained", subject.name, millions),
       .value = seconds / tokens * 1e6,
       .unit = "us",
       .target = at_peak / kPeakShare * 1e6,
       .peer =
           fmt::format("its matrix products at {:.0f} GFLOP/s, {}", peak * 1e-9, gemm_identity()),
       .peer_value = at_peak * 1e6});
}

}  // namespace
}  // namespace orrery

int main() {
  using orrery::TransformerFamily;
  orrery::measure({"gpt", {.layers = 4, .width = 256, .heads = 4}, 8});
  orrery::measure({"gpt", {.layers = 6, .width = 384, .heads = 6}, 8});
  orrery::measure({"llama",
                   {.family = TransformerFamily::kLlama,
                    .layers = 6,
                    .width = 384,
                    .heads = 6,
                    .kv_heads = 2,
                    .ffn = 1024,
                    .tied_embedding = false},
                   8});
  return 0;
}

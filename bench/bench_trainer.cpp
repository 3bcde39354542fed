// How fast the reference trainer trains, one thread, beside what the same matrix products would
// take at the pace of one large product in the same run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

constexpr int kRounds = 12;
constexpr int kTorchSteps = 6;  ///< a run of the peer; the first warms it up
constexpr double kPeakShare = 0.65;
constexpr double kTorchRatio = 1.1;

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

#ifdef ORRERY_TORCH_PEER
// Seconds of libtorch's fastest step of the same model. Debian's OpenBLAS takes processors it does
// not know for old ones unless told.
std::optional<double> torch_seconds(const Subject& subject) {
  const TransformerConfig& config = subject.config;
  if (config.family != TransformerFamily::kGpt) return std::nullopt;
  const bool wide = std::string_view(kernels().isa).find("avx512") != std::string_view::npos;
  const std::string command =
      fmt::format("OPENBLAS_CORETYPE={} OMP_NUM_THREADS=1 {} {} {} {} {} {} {}",
                  wide ? "SkylakeX" : "Haswell", ORRERY_TORCH_PEER, config.layers, config.width,
                  config.heads, config.sequence, subject.sequences, kTorchSteps);
  std::FILE* answer = ::popen(command.c_str(), "r");
  if (answer == nullptr) return std::nullopt;
  double seconds = 0;
  const int read = std::fscanf(answer, "%lf", &seconds);
  if (::pclose(answer) == 0 && read == 1) return seconds;
  fmt::print(stderr, "bench_trainer: the peer failed: {}\n", command);
  std::exit(1);
}
#else
std::optional<double> torch_seconds(const Subject&) { return std::nullopt; }
#endif

/// The best of each, in seconds: they take turns, so that a busy neighbour slows all.
struct Race {
  double step = std::numeric_limits<double>::max();
  double operation = std::numeric_limits<double>::max();  ///< at the large product's pace
  std::optional<double> torch;
};

Race race(const Subject& subject, Training& training) {
  PeakProduct product;
  Race best;
  for (int round = 0; round < kRounds; ++round) {
    best.operation = std::min(best.operation, 1 / product.measure());
    best.step = std::min(best.step, seconds_of([&] { training.step(); }));
    if (round % 3 != 0) continue;
    if (const std::optional<double> torch = torch_seconds(subject); torch) {
      best.torch = std::min(best.torch.value_or(*torch), *torch);
    }
  }
  return best;
}

void measure(const Subject& subject) {
  Training training(subject);
  const Race best = race(subject, training);
  const auto tokens = static_cast<double>(subject.sequences * subject.config.sequence);
  const double at_peak = operations_per_token(training.model().layout()) * best.operation;
  const auto millions = static_cast<double>(training.model().layout().trained()) * 1e-6;
  Figure figure{
      .bench = "trainer",
      .name = fmt::format("{}, {:.1f} M weights, time of a token trained", subject.name, millions),
      .value = best.step / tokens * 1e6,
      .unit = "us",
      .target = at_peak / kPeakShare * 1e6,
      .peer = fmt::format("its matrix products at {:.0f} GFLOP/s, {}", 1e-9 / best.operation,
                          gemm_identity()),
      .peer_value = at_peak * 1e6};
  print_figure(figure);
  if (!best.torch) {
    if (subject.config.family == TransformerFamily::kGpt) {
      fmt::print(stderr, "bench_trainer: libtorch-dev is not installed, so nothing is compared\n");
    }
    return;
  }
  figure.peer = "libtorch with OpenBLAS, one thread";
  figure.peer_value = *best.torch / tokens * 1e6;
  figure.target = *figure.peer_value / kTorchRatio;
  print_figure(figure);
}

// Measures the same model alternately in both precisions.
void measure_bfloat16(const Subject& subject) {
  if (const Status possible = check_precision(ProductPrecision::kBfloat16); !possible) {
    fmt::print(stderr, "bench_trainer: {}\n", possible.error().text());
    return;
  }
  Subject rounded = subject;
  rounded.config.precision = ProductPrecision::kBfloat16;
  Training exact_training(subject);
  Training rounded_training(rounded);
  double exact = std::numeric_limits<double>::max();
  double fast = exact;
  for (int round = 0; round < kRounds; ++round) {
    exact = std::min(exact, seconds_of([&] { exact_training.step(); }));
    fast = std::min(fast, seconds_of([&] { rounded_training.step(); }));
  }
  const auto tokens = static_cast<double>(subject.sequences * subject.config.sequence);
  print_figure({.bench = "trainer",
                .name = fmt::format("{} in bfloat16, time of a token trained", subject.name),
                .value = fast / tokens * 1e6,
                .unit = "us",
                .peer = "the same in float32",
                .peer_value = exact / tokens * 1e6});
}

}  // namespace
}  // namespace orrery

int main() {
  using orrery::Subject;
  using orrery::TransformerFamily;
  const Subject gpt{"gpt", {.layers = 6, .width = 384, .heads = 6}, 8};
  orrery::measure({"gpt", {.layers = 4, .width = 256, .heads = 4}, 8});
  orrery::measure(gpt);
  orrery::measure({"llama",
                   {.family = TransformerFamily::kLlama,
                    .layers = 6,
                    .width = 384,
                    .heads = 6,
                    .kv_heads = 2,
                    .ffn = 1024,
                    .tied_embedding = false},
                   8});
  orrery::measure_bfloat16(gpt);
  return 0;
}

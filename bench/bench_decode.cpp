// How fast the inference engine generates, one thread: the time of a token when 1, 8 and 32 texts
// are generated together, which share each reading of the weights, and what of a step goes to the
// products, the attention and the drawing of tokens.
//
//   bench_decode [--python PROGRAM]
//
// PROGRAM is a Python with PyTorch, python3 without the option: the peer of the products, in one
// thread. Without PyTorch they are measured alone.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format/document.hpp"
#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "inference/engine/inference_engine.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/trainer/parameter_layout.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPrompt = 32;  ///< tokens
constexpr std::size_t kSteps = 48;   ///< measured, so the mean context is 56 tokens
constexpr std::int64_t kContext = kPrompt + kSteps / 2;
constexpr int kRounds = 3;
const std::vector<std::size_t> kSlots = {1, 8, 32};

struct Subject {
  std::string name;
  TransformerConfig config;
  double speedup = 1;  ///< of 8 texts, at least
};

AlignedFloats random_floats(std::size_t count, std::uint64_t seed) {
  AlignedFloats floats(count);
  Rng rng(seed);
  for (float& each : floats) each = static_cast<float>(rng.uniform()) - 0.5F;
  return floats;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Milliseconds of a step and of its parts.
struct StepTimes {
  double step = 1e9;
  double products = 1e9;
  double attention = 1e9;
  double drawing = 1e9;
};

/// A model and what its parts take.
class Decoding {
 public:
  explicit Decoding(const Subject& subject)
      : config_(subject.config), layout_(config_), model_(layout_, initial(layout_)) {}

  StepTimes measure(std::size_t slots) const {
    return {.step = step_ms(slots),
            .products = products_ms(slots),
            .attention = attention_ms(slots),
            .drawing = drawing_ms(slots)};
  }

 private:
  static AlignedFloats initial(const ParameterLayout& layout) {
    AlignedFloats parameters(layout.size());
    initialise(layout, 1, parameters);
    return parameters;
  }
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

  [[nodiscard]] double step_ms(std::size_t slots) const {
    const ByteTokenizer tokenizer;
    InferenceEngine engine(model_, tokenizer, {.slots = slots, .step_tokens = 256});
    Rng rng(1);
    for (std::size_t i = 0; i < slots; ++i) {
      std::vector<std::int32_t> prompt(kPrompt);
      for (auto& token : prompt) token = static_cast<std::int32_t>(rng.below(256));
      const auto tokens = static_cast<std::int64_t>(kSteps + slots);
      (void)engine.submit({.prompt = prompt, .sampling = {.tokens = tokens, .seed = i}});
    }
    while (engine.step().decode_sequences < slots) continue;
    std::vector<double> times(kSteps / 2);
    for (double& each : times) each = 1e3 * seconds_of([&] { (void)engine.step(); });
    return median(times);
  }

  [[nodiscard]] double products_ms(std::size_t slots) const {
    const PackedBlock& first = model_.blocks().front();
    const std::int64_t wide = std::max({first.up.out(), first.qkv.out(), config_.vocab});
    const AlignedFloats x = random_floats(slots * size(std::max(wide, first.down.in())), 1);
    AlignedFloats out(slots * size(wide));
    const auto multiply = [&](const PackedLinear& linear) {
      linear.multiply(decode_kernels(),
                      {.x = x.data(), .out = out.data(), .rows = static_cast<std::int64_t>(slots)});
    };
    return 1e3 * seconds_of([&] {
             for (const PackedBlock& block : model_.blocks()) {
               multiply(block.qkv);
               multiply(block.attention_out);
               multiply(block.up);
               multiply(block.down);
             }
             multiply(model_.head());
           });
  }

  [[nodiscard]] double attention_ms(std::size_t slots) const {
    constexpr std::int64_t kBlocks =
        (kContext + PagedAttention::kBlock - 1) / PagedAttention::kBlock;
    const std::size_t layer = PagedDecoder::block_floats(config_) / size(config_.layers);
    const AlignedFloats cache = random_floats(slots * size(config_.layers * kBlocks) * layer, 2);
    const AlignedFloats query = random_floats(size(config_.width), 3);
    AlignedFloats scores(size(kBlocks * PagedAttention::kBlock));
    AlignedFloats out(query.size());
    return 1e3 * seconds_of([&] {
             const float* block = cache.data();
             for (std::size_t i = 0; i < slots * size(config_.layers); ++i) {
               std::vector<const float*> blocks;
               for (int b = 0; b < kBlocks; ++b, block += layer) blocks.push_back(block);
               decode_kernels().paged_attention({.query = query.data(),
                                                 .blocks = blocks.data(),
                                                 .visible = kContext,
                                                 .heads = config_.heads,
                                                 .kv_heads = config_.key_value_heads(),
                                                 .head_width = config_.head_width(),
                                                 .scores = scores.data(),
                                                 .out = out.data()});
             }
           });
  }

  [[nodiscard]] double drawing_ms(std::size_t slots) const {
    const AlignedFloats logits = random_floats(size(config_.vocab), 4);
    Rng rng(5);
    return 1e3 * seconds_of([&] {
             for (std::size_t i = 0; i < slots; ++i) (void)sample_token(logits, {}, rng);
           });
  }

  TransformerConfig config_;
  ParameterLayout layout_;
  PackedTransformer model_;
};

/// Milliseconds of the products of a step in PyTorch, by slots; nothing if it is not there.
/// Debian's OpenBLAS takes processors that it does not know for old ones unless told.
struct Peer {
  std::string name;
  std::vector<double> products;
};

std::optional<Peer> torch_peer(const std::string& python, const TransformerConfig& config) {
  const bool wide = std::string_view(kernels().isa).find("avx512") != std::string_view::npos;
  const std::string command = fmt::format(
      "OPENBLAS_CORETYPE={} OMP_NUM_THREADS=1 '{}' {}/bench/peer_decode.py {} {} {} {} 2>/dev/null",
      wide ? "SkylakeX" : "Haswell", python, ORRERY_SOURCE_DIR, config.layers, config.width,
      config.vocab, fmt::join(kSlots, " "));
  std::FILE* answer = ::popen(command.c_str(), "r");
  if (answer == nullptr) return std::nullopt;
  char version[64];
  Peer peer;
  if (std::fscanf(answer, "%63s", version) == 1) {
    peer.name = fmt::format("torch {}", version);
    double value = 0;
    while (std::fscanf(answer, "%lf", &value) == 1) peer.products.push_back(value);
  }
  if (::pclose(answer) == 0 && peer.products.size() == kSlots.size()) return peer;
  fmt::print(stderr, "bench_decode: NOT MEASURED: the peer: {} has no PyTorch\n", python);
  return std::nullopt;
}

void show(const Figure& figure) {
  Figure own = figure;
  own.bench = "decode";
  print_figure(own);
  (void)std::fflush(stdout);
}

void show_times(const Subject& subject, const std::vector<StepTimes>& all,
                const std::optional<Peer>& peer) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StepTimes& times = all[i];
    const std::string name = fmt::format("{}, {} at once", subject.name, kSlots[i]);
    const double alone = all.front().step;
    Figure token{.name = name + ": a token",
                 .value = times.step / static_cast<double>(kSlots[i]),
                 .unit = "ms"};
    if (i > 0) {
      token.peer = "1 at once";
      token.peer_value = alone;
      if (kSlots[i] == 8) token.target = alone / subject.speedup;
    }
    show(token);
    Figure products{.name = name + ": products of a step", .value = times.products, .unit = "ms"};
    if (peer) {
      products.peer = peer->name;
      products.peer_value = peer->products[i];
    }
    show(products);
    const auto share = [&](const char* part, double value) {
      show({.name = name + ": share of " + part, .value = 100 * value / times.step, .unit = "%"});
    };
    share("products", times.products);
    share("attention", times.attention);
    share("drawing", times.drawing);
  }
}

/// The best of each, since a busy neighbour slows some.
void measure(const Subject& subject, const std::string& python) {
  const Decoding decoding(subject);
  std::vector<StepTimes> all(kSlots.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const StepTimes times = decoding.measure(kSlots[i]);
      all[i].step = std::min(all[i].step, times.step);
      all[i].products = std::min(all[i].products, times.products);
      all[i].attention = std::min(all[i].attention, times.attention);
      all[i].drawing = std::min(all[i].drawing, times.drawing);
    }
  }
  show_times(subject, all, torch_peer(python, subject.config));
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  using namespace orrery;
  const std::vector<std::string> options(arguments + 1, arguments + count);
  if (!options.empty() && (options.size() != 2 || options[0] != "--python")) {
    fmt::print(stderr, "bench_decode: expected no option, or --python PROGRAM\n");
    return 2;
  }
  const std::string python = options.empty() ? "python3" : options[1];
  measure({.name = "4 layers x 192",
           .config = {.layers = 4, .width = 192, .heads = 6, .sequence = 128},
           .speedup = 1.5},
          python);
  measure({.name = "12 layers x 768",
           .config = {.layers = 12, .width = 768, .heads = 12, .vocab = 32'000, .sequence = 256},
           .speedup = 4},
          python);
  return 0;
}

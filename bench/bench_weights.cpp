// bench_weights: how fast the engine computes a model of the shape of SmolLM2-135M with weights in
// each format, one thread: the tokens of a prompt of 512, and a step of 1, 8 and 32 texts.
//
//   bench_weights [--llama DIR]
//
// DIR is what scripts/bench --peers makes: node-llama-cpp and the files of
// bench/serving/write_gguf.py, of the same shape, which llama.cpp computes beside it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/numbers/rng.hpp"
#include "bench/command_output.hpp"
#include "bench/figure.hpp"
#include "inference/engine/paged_decoder.hpp"
#include "runtime/trainer/generate.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kPrompt = 512;
constexpr std::int64_t kContext = 32;  ///< tokens of a text before it is decoded
constexpr std::int64_t kSteps = 24;
constexpr int kRounds = 3;
const std::vector<std::int64_t> kTexts = {1, 8, 32};

/// Milliseconds, the least of all rounds.
struct Times {
  double prompt = 1e12;
  std::map<std::int64_t, double> step;

  void add(const Times& other) {
    prompt = std::min(prompt, other.prompt);
    for (const auto& [texts, ms] : other.step) {
      const auto [at, first] = step.try_emplace(texts, ms);
      if (!first) at->second = std::min(at->second, ms);
    }
  }
};

/// A format and the file that a peer computes; the ratios that are wanted.
struct Subject {
  std::string name;
  WeightFormat format;
  std::string file;
  double prompt = 1;
  double one = 1;
  double many = 1;  ///< 32 texts
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Texts that grow together, each in blocks of its own.
class GrowingTexts {
 public:
  GrowingTexts(const PackedTransformer& model, std::int64_t texts, std::int64_t tokens)
      : model_(model),
        texts_(texts),
        blocks_of_text_((tokens + 15) / 16),
        decoder_(model, {.blocks = static_cast<std::size_t>(texts * blocks_of_text_),
                         .rows = std::max(texts, kPrompt)}) {
    for (KvBlockId block = 0; block < texts_ * blocks_of_text_; ++block) blocks_.push_back(block);
  }

  /// Computes the tokens of each text up to `end`, text by text.
  void begin(std::int64_t end) {
    Rng rng(1);
    for (std::int64_t text = 0; text < texts_; ++text) {
      std::vector<DecoderRow> rows;
      for (; static_cast<std::int64_t>(rows.size()) < end;) {
        const auto position = static_cast<std::int64_t>(rows.size());
        const auto token = static_cast<std::int32_t>(rng.below(40'000));
        rows.push_back(row(text, token, position));
      }
      rows.back().scores = DecoderRow::Scores::kWanted;
      last_.push_back(drawn(decoder_.compute(rows)));
    }
    length_ = end;
  }
  /// Computes one token more of each.
  void step() {
    std::vector<DecoderRow> rows;
    for (std::int64_t text = 0; text < texts_; ++text) {
      rows.push_back(row(text, last_[static_cast<std::size_t>(text)], length_));
      rows.back().scores = DecoderRow::Scores::kWanted;
    }
    const std::span<const float> scores = decoder_.compute(rows);
    const auto vocab = static_cast<std::size_t>(model_.config().vocab);
    for (std::size_t text = 0; text < last_.size(); ++text) {
      last_[text] = drawn(scores.subspan(text * vocab, vocab));
    }
    ++length_;
  }

 private:
  [[nodiscard]] DecoderRow row(std::int64_t text, std::int32_t token, std::int64_t position) const {
    const auto count = static_cast<std::size_t>(blocks_of_text_);
    return {.token = token,
            .position = position,
            .blocks = std::span(blocks_).subspan(static_cast<std::size_t>(text) * count, count)};
  }
  static std::int32_t drawn(std::span<const float> scores) {
    Rng rng(1);
    return sample_token(scores, {.temperature = 0}, rng);
  }

  const PackedTransformer& model_;
  std::int64_t texts_;
  std::int64_t blocks_of_text_;
  PagedDecoder decoder_;
  std::vector<KvBlockId> blocks_;
  std::vector<std::int32_t> last_;
  std::int64_t length_ = 0;
};

Times own_times(const PackedTransformer& model) {
  Times times;
  GrowingTexts prompt(model, 1, kPrompt);
  times.prompt = 1e3 * seconds_of([&] { prompt.begin(kPrompt); });
  for (const std::int64_t count : kTexts) {
    GrowingTexts texts(model, count, kContext + kSteps + 1);
    texts.begin(kContext);
    std::vector<double> steps(kSteps);
    for (double& each : steps) each = 1e3 * seconds_of([&] { texts.step(); });
    times.step[count] = median(steps);
  }
  return times;
}

/// Returns nothing where the peer is missing or fails.
std::optional<Times> peer_times(const std::string& directory, const std::string& file) {
  const auto output = command_output(
      fmt::format("cd '{}' && node {}/bench/serving/peer_llama.mjs {}.gguf {} {} {} 2>/dev/null",
                  directory, ORRERY_SOURCE_DIR, file, kPrompt, kSteps, fmt::join(kTexts, " ")));
  const Json read = output ? Json::parse(*output, nullptr, false) : Json();
  if (!read.is_object()) {
    fmt::print(stderr, "bench_weights: NOT MEASURED: llama.cpp with {}/{}.gguf\n", directory, file);
    return std::nullopt;
  }
  Times times{.prompt = read["prefill_ms"].get<double>()};
  for (const std::int64_t count : kTexts) {
    times.step[count] = read["step_ms"][std::to_string(count)].get<double>();
  }
  return times;
}

void show(const Subject& subject, const Times& own, const std::optional<Times>& peer) {
  const auto print = [&](const std::string& what, double ms, double other, double ratio) {
    Figure figure{.bench = "weights",
                  .name = fmt::format("{}: {}", subject.name, what),
                  .value = ms,
                  .unit = "ms"};
    if (peer) {
      figure.target = other / ratio;
      figure.peer = fmt::format("llama.cpp, {}", subject.file);
      figure.peer_value = other;
    }
    print_figure(figure);
  };
  print(fmt::format("a prompt of {} tokens", kPrompt), own.prompt, peer ? peer->prompt : 0,
        subject.prompt);
  for (const std::int64_t count : kTexts) {
    print(fmt::format("a step of {} texts", count), own.step.at(count),
          peer ? peer->step.at(count) : 0, count == 1 ? subject.one : subject.many);
  }
}

/// In turn, since a busy neighbour slows some rounds.
void measure(const Subject& subject, const PackedTransformer& model, const std::string& llama) {
  Times own;
  std::optional<Times> peer;
  for (int round = 0; round < kRounds; ++round) {
    own.add(own_times(model));
    if (llama.empty()) continue;
    const std::optional<Times> times = peer_times(llama, subject.file);
    if (!times) continue;
    if (!peer) peer.emplace();
    peer->add(*times);
  }
  show(subject, own, peer);
}

void run(const std::string& llama) {
  const ParameterLayout layout({.family = TransformerFamily::kLlama,
                                .layers = 30,
                                .width = 576,
                                .heads = 9,
                                .kv_heads = 3,
                                .ffn = 1536,
                                .vocab = 49'152,
                                .sequence = 8192});
  AlignedFloats parameters(layout.size());
  initialise(layout, 1, parameters);
  for (const Subject& subject :
       {Subject{"f32", WeightFormat::kF32, "F32", 1.5, 1, 1.3},
        Subject{"bf16", WeightFormat::kBf16, "BF16", 1.5, 1, 2},
        Subject{"int8", WeightFormat::kInt8, "Q8_0", 1.5, 1, 1.5},
        Subject{"int8 beside 4 bits", WeightFormat::kInt8, "Q4_1", 1.5, 1, 1.5}}) {
    measure(subject, PackedTransformer(layout, parameters, {.weights = subject.format}), llama);
  }
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  const std::vector<std::string> options(arguments + 1, arguments + count);
  if (!options.empty() && (options.size() != 2 || options[0] != "--llama")) {
    fmt::print(stderr, "bench_weights: expected no option, or --llama DIR\n");
    return 2;
  }
  orrery::run(options.empty() ? "" : options[1]);
  return 0;
}

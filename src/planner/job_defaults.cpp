#include "planner/job_defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/format/field_writer.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kLargeModel = 100e9;
constexpr double kSequenceDefault = 8192;
constexpr double kSequenceMax = 1e8;
constexpr double kBatchMax = 1e9;
constexpr double kVitBatch = 4096;       ///< images, Dosovitskiy et al. 2021
constexpr double kDiffusionBatch = 256;  ///< images, Peebles and Xie 2023; taken of videos too
/// Tokens of a pretraining run that has no stated length (Hoffmann et al. 2022).
constexpr double kTokensPerParameter = 20;
constexpr double kFineTuneTokens = 100e6;
constexpr double kLoraTokens = 3901.0 * 8192;

struct PrecisionWord {
  std::string_view word;
  TrainingPrecision precision;
};

constexpr std::array<PrecisionWord, 12> kPrecisions = {{
    {"bf16", {.format = NumberFormat::kBf16}},
    {"fp16", {.format = NumberFormat::kFp16}},
    {"tf32", {.format = NumberFormat::kTf32}},
    {"fp32", {.format = NumberFormat::kFp32}},
    {"fp8", {.format = NumberFormat::kFp8, .scaling = Scaling::kTensor}},
    {"fp8-row", {.format = NumberFormat::kFp8, .scaling = Scaling::kRow}},
    {"fp8-block", {.format = NumberFormat::kFp8, .scaling = Scaling::kBlock}},
    {"mxfp8", {.format = NumberFormat::kFp8, .scaling = Scaling::kBlock}},
    {"fp4", {.format = NumberFormat::kFp4, .scaling = Scaling::kBlock}},
    {"nvfp4", {.format = NumberFormat::kFp4, .scaling = Scaling::kBlock}},
    {"mxfp4", {.format = NumberFormat::kFp4, .scaling = Scaling::kBlock}},
    {"int8", {.format = NumberFormat::kInt8, .scaling = Scaling::kRow}},
}};

Result<double> whole(double value, double limit) {
  if (value >= 1 && value <= limit && std::floor(value) == value) return value;
  return input_error({}, fmt::format("{}: expected a whole number from 1 to {:.0f}", value, limit));
}

/// Sequences or samples of a step, whatever the ranks: at least one sample for each.
double usual_batch(const Model& model, const BatchWish& wish) {
  std::uint64_t most = 1;
  for (const std::uint64_t ranks : wish.ranks) most = std::max(most, ranks);
  const auto for_ranks = [&](double usual) { return std::max(usual, static_cast<double>(most)); };
  if (std::holds_alternative<VisionTransformer>(model.architecture)) return for_ranks(kVitBatch);
  if (unit_of(model) != SampleUnit::kTokens) return for_ranks(kDiffusionBatch);
  const bool large = count_parameters(model).total > kLargeModel;
  return std::max(1.0, std::round((large ? 16 : 4) * kMebi / wish.sequence));
}

}  // namespace

Result<TrainingPrecision> precision_named(const std::string& word) {
  const std::string lower = lower_case(word);
  std::vector<std::string_view> words;
  for (const PrecisionWord& entry : kPrecisions) {
    if (entry.word == lower) return entry.precision;
    words.push_back(entry.word);
  }
  return input_error(
      {}, fmt::format("\"{}\" is not known{}; bf16, fp8, mxfp8 and nvfp4 are among those known",
                      word, did_you_mean(word, words)));
}

Result<double> sequence_of(const Model& model, std::optional<double> stated) {
  const double sample = sample_tokens(model);
  if (stated && sample > 0 && *stated != sample) {
    return input_error({}, fmt::format("a sample of {} has {} tokens", model.name, sample));
  }
  const auto* transformer = std::get_if<Transformer>(&model.architecture);
  const double longest =
      transformer != nullptr ? static_cast<double>(transformer->positions_max) : 0;
  const double usual = longest > 0 ? std::min(kSequenceDefault, longest) : kSequenceDefault;
  return whole(stated.value_or(sample > 0 ? sample : usual), kSequenceMax);
}

Result<double> batch_of(const Model& model, const BatchWish& wish) {
  if (wish.stated) return whole(*wish.stated, kBatchMax);
  const double sequences = usual_batch(model, wish);
  std::uint64_t odd = 1;
  for (const std::uint64_t ranks : wish.ranks) {
    const std::uint64_t joint = std::lcm(odd, ranks >> std::countr_zero(ranks));
    if (static_cast<double>(joint) <= sequences) odd = joint;
  }
  auto unit = static_cast<double>(odd);
  if (odd == 1) return sequences;
  while (unit * 32 <= sequences) unit *= 2;
  return std::round(sequences / unit) * unit;
}

SampleUnit unit_of(const Model& model) {
  if (std::holds_alternative<VisionTransformer>(model.architecture)) return SampleUnit::kImages;
  if (std::holds_alternative<DiffusionTransformer>(model.architecture)) return SampleUnit::kImages;
  if (std::holds_alternative<VideoDiffusionTransformer>(model.architecture)) {
    return SampleUnit::kVideos;
  }
  return SampleUnit::kTokens;
}

std::string print_run(SampleUnit unit, double length) {
  if (unit == SampleUnit::kTokens) return print(Tokens(length));
  return fmt::format("{} {}", print_count(length), word_of(unit));
}

RunLength run_length_of(const TrainingJob& job, std::optional<double> stated) {
  RunLength run{.unit = unit_of(*job.model), .length = stated, .assumption = {}};
  if (stated) return run;
  if (run.unit != SampleUnit::kTokens) {
    run.assumption =
        fmt::format("no length of a run: it depends on the data set; --samples states it in {}",
                    word_of(run.unit));
    return run;
  }
  switch (job.task) {
    case TrainingTask::kPretrain:
      run.length = kTokensPerParameter * count_parameters(*job.model).total;
      run.assumption = fmt::format("a run of {}: 20 a parameter (Hoffmann et al. 2022)",
                                   print_run(run.unit, *run.length));
      break;
    case TrainingTask::kFineTune:
      run.length = kFineTuneTokens;
      run.assumption = fmt::format("a run of {}, a usual size of fine-tuning data (assumed)",
                                   print_run(run.unit, *run.length));
      break;
    case TrainingTask::kLora:
      run.length = kLoraTokens;
      run.assumption = fmt::format(
          "a run of {}: the data set of MLPerf's LoRA benchmark, 3,901 "
          "sequences of 8,192 (recalled)",
          print_run(run.unit, *run.length));
      break;
  }
  return run;
}

}  // namespace orrery

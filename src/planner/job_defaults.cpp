#include "planner/job_defaults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/nearest_name.hpp"

namespace orrery {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kLargeModel = 100e9;
constexpr double kSequenceDefault = 8192;
constexpr double kSequenceMax = 1e8;
constexpr double kBatchMax = 1e9;

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
  const bool large = count_parameters(model).total > kLargeModel;
  const double sequences = std::max(1.0, std::round((large ? 16 : 4) * kMebi / wish.sequence));
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

}  // namespace orrery

// planner/job_defaults.hpp - defaults for what the owner of a training job did not state: the words
// for a precision, the usual sequence and batch.
//
// Shared by the command line and the scheduler, which turn a request into a question. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "perf/training/training_job.hpp"

namespace orrery {

/// "bf16", "fp8", "mxfp8", "nvfp4", ..., without regard to case. Errors: any other word, with the
/// nearest.
[[nodiscard]] Result<TrainingPrecision> precision_named(const std::string& word);

/// Tokens of a sequence as stated, else 8192 or the longest for which the model was made; a sample
/// of an image or video model has a fixed number of tokens. Errors: not a whole number, another
/// sample's tokens.
[[nodiscard]] Result<double> sequence_of(const Model& model, std::optional<double> stated);

struct BatchWish {
  std::optional<double> stated;
  double sequence = 1;                   ///< tokens
  std::span<const std::uint64_t> ranks;  ///< numbers of ranks on which the job may run; none is 0
};

/// Sequences in a step as stated, else 16 Mi tokens above 100 B parameters and 4 Mi below; for
/// models of images and videos 4,096 or 256 samples, and no fewer than ranks. The number is
/// divisible by the odd part of each of `ranks` as far as possible, so that replicas get equal
/// shares. Errors: not a whole number.
[[nodiscard]] Result<double> batch_of(const Model& model, const BatchWish& wish);

/// The unit in which the length of a run is counted.
enum class SampleUnit { kTokens, kImages, kVideos };

inline std::array<EnumWord<SampleUnit>, 3> enum_words(SampleUnit) {
  return {{{"tokens", SampleUnit::kTokens},
           {"images", SampleUnit::kImages},
           {"videos", SampleUnit::kVideos}}};
}

[[nodiscard]] SampleUnit unit_of(const Model& model);

/// "15T tokens", "1,200,000 images".
[[nodiscard]] std::string print_run(SampleUnit unit, double length);

struct RunLength {
  SampleUnit unit = SampleUnit::kTokens;
  std::optional<double> length;  ///< none: not stated, and there is no usual length
  std::string assumption;        ///< where the length comes from; empty: it was stated
};

/// The run as stated. Otherwise, for a language model: 20 tokens a parameter for pretraining, a
/// fine-tuning data set for the other tasks. Models of images and videos have no usual length.
[[nodiscard]] RunLength run_length_of(const TrainingJob& job, std::optional<double> stated);

}  // namespace orrery

// planner/job_defaults.hpp - what a training job is taken to be where its owner did not say: the
// words for a precision, the usual sequence and batch.
//
// Shared by whoever turns a wish into a question: the command line, the scheduler. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "perf/training_job.hpp"

namespace orrery {

/// "bf16", "fp8", "mxfp8", "nvfp4", ..., without regard to case. Errors: any other word, with the
/// nearest.
[[nodiscard]] Result<TrainingPrecision> precision_named(const std::string& word);

/// Tokens of a sequence as stated, else 8192 or the longest the model was made for; a sample of an
/// image or video model has the tokens it has. Errors: no whole number, another sample's tokens.
[[nodiscard]] Result<double> sequence_of(const Model& model, std::optional<double> stated);

struct BatchWish {
  std::optional<double> stated;
  double sequence = 1;                   ///< tokens
  std::span<const std::uint64_t> ranks;  ///< that the job may run on; none is 0
};

/// Sequences a step as stated, else 16 Mi tokens above 100 B parameters and 4 Mi below: a number
/// that the odd part of each of `ranks` divides, as far as that is possible, so that replicas get
/// equal shares. Errors: no whole number.
[[nodiscard]] Result<double> batch_of(const Model& model, const BatchWish& wish);

}  // namespace orrery

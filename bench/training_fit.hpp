// bench/training_fit.hpp - the rows of a training run file as questions with measured answers.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bench/measured_runs.hpp"
#include "perf/run_file.hpp"
#include "perf/training_estimate.hpp"
#include "perf/training_step.hpp"

namespace orrery {

struct TrainingCase {
  const TrainingRun* run = nullptr;
  const MeasuredRow* measured = nullptr;
  RunQuestion question;
  double seconds = 0;  ///< measured, an optimizer step
};

/// Seconds a step, stated or from a stated rate; none where neither is.
inline std::optional<double> measured_seconds(const MeasuredRow& row, const RunQuestion& question) {
  const TrainingJob& job = question.job;
  if (row.step_seconds && (question.batch_known || !row.tokens_s)) return row.step_seconds;
  const double tokens = job.global_batch * job.sequence.value();
  const double accelerators = static_cast<double>(question.machine.ranks) /
                              question.machine.ranks_per_accelerator;
  if (row.tokens_s) return tokens / (*row.tokens_s * accelerators);
  if (row.samples_s) return job.global_batch / *row.samples_s;
  const bool counted = row.tflops_kind.find("full") != std::string::npos ||
                       row.tflops_kind.find("non-causal") != std::string::npos;
  const MaskedScores masked = counted ? MaskedScores::kCounted : MaskedScores::kSkipped;
  const double flops = 3 * forward_flops(*job.model, job.sequence, masked).value() * tokens;
  if (row.tflops) return flops / (*row.tflops * 1e12 * accelerators);
  return std::nullopt;
}

/// What is recomputed where the row does not say: the least that fits: none, attention's scores, as
/// few layers of a rank as it takes.
inline void close_recompute(RunQuestion& question, const TrainingModel& model) {
  if (!question.recompute_open) return;
  const auto fits = [&] {
    return model.memory(question.plan).total() <= model.memory_limit();
  };
  question.plan.recompute_layers = 0;
  for (const Recompute mode : {Recompute::kNone, Recompute::kSelective}) {
    question.plan.recompute = mode;
    if (fits()) return;
  }
  question.plan.recompute = Recompute::kFull;
  const auto layers = static_cast<std::uint32_t>(model.work().layers / question.plan.pp);
  for (std::uint32_t n = 1; n < layers; ++n) {
    question.plan.recompute_layers = n;
    if (fits()) return;
  }
  question.plan.recompute_layers = 0;
}

}  // namespace orrery

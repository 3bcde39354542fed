// perf/serving/serving_step.hpp - one pass of an inference engine over its running sequences and
// the pieces of prompts it takes along.
//
// Pure. Cost: O(kinds of layers x matrices of one).
#pragma once

#include "perf/machine/kernel_time.hpp"
#include "perf/serving/serving_job.hpp"

namespace orrery {

/// What one pass works on, for one instance (all its attention groups together).
struct StepLoad {
  double sequences = 0;  ///< that each generate a token
  double context = 0;    ///< tokens each of them sees, on average
  double prompts = 0;    ///< prompt tokens
  double piece = 0;      ///< prompt tokens of one sequence in this pass
  double seen = 0;       ///< tokens a prompt token sees, on average
  double finished = 0;   ///< prompts that end in this pass and need their first token
};

/// Seconds by cause; they add up to the pass.
struct StepTime {
  double matmul = 0;
  double experts = 0;
  double attention = 0;
  double elementwise = 0;
  double collective = 0;
  double host = 0;

  [[nodiscard]] double total() const {
    return matmul + experts + attention + elementwise + collective + host;
  }
  StepTime& operator+=(const StepTime& other);
  friend StepTime operator*(double factor, const StepTime& time);
};

class ServingStep {
 public:
  /// `job` and the accelerator must outlive it.
  ServingStep(const ServingJob& job, const ServingConstants& constants);

  /// A pass of the whole model; with pipeline stages, of the micro-batch that `load` describes.
  [[nodiscard]] StepTime time(const StepLoad& load) const;

 private:
  [[nodiscard]] StepTime layer_time(const ServingLayer& layer, const StepLoad& load) const;
  [[nodiscard]] double matrices_time(const ServingLayer& layer, double tokens) const;
  [[nodiscard]] double attention_time(const ServingAttention& attention,
                                      const StepLoad& load) const;
  [[nodiscard]] double experts_time(const ServingExperts& experts, double tokens) const;
  [[nodiscard]] double collective_time(const ServingLayer& layer, double tokens) const;
  [[nodiscard]] double pipeline_time(double tokens) const;

  const ServingJob& job_;
  ServingConstants constants_;
  KernelTime kernels_;
};

/// Experts of `count` that `tokens` with `active` choices each reach: E (1 - (1 - k/E)^B).
[[nodiscard]] double experts_touched(const ServingExperts& experts, double tokens);

}  // namespace orrery

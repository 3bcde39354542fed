// perf/serving/serving_memory.hpp - what a device holds while serving, and how many sequences that
// leaves room for.
//
// Pure. Cost: O(kinds of layers).
#pragma once

#include "perf/serving/serving_constants.hpp"
#include "perf/serving/serving_job.hpp"

namespace orrery {

/// Bytes of one device: the fullest, where they differ.
struct ServingMemory {
  double weights = 0;
  double activations = 0;  ///< of the largest pass, logits included
  double sequence = 0;     ///< cache and state of one sequence at full reservation
  double available = 0;    ///< for weights, activations and sequences
  double sequences = 0;    ///< that fit, of the whole instance; below 1: the job does not fit

  [[nodiscard]] bool fits() const { return sequences >= 1; }
  [[nodiscard]] double used(double running, double groups) const {
    return weights + activations + sequence * running / groups;
  }
};

[[nodiscard]] ServingMemory serving_memory(const ServingJob& job, const EngineConstants& engine);

/// Bytes on one device that a sequence of `tokens` occupies.
[[nodiscard]] double sequence_bytes(const ServingJob& job, double tokens);

}  // namespace orrery

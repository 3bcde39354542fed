// perf/serving/serving_estimate.hpp - a published serving run as a job, and the job's prediction
// with its intervals.
//
// Reads what ServingRun holds and nothing else. Pure.
// Cost: one prediction; one for each layout tried where the row states none.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "perf/runs/run_file.hpp"
#include "perf/serving/serving.hpp"

namespace orrery {

/// Factors on a predicted figure: 10th and 90th percentile of measured over predicted.
struct ServingInterval {
  double low = 1;
  double high = 1;
};

struct ServingEstimate {
  ServingJob job;
  ServingPrediction prediction;
  ServingInterval throughput;
  ServingInterval latency;  ///< of a token and of a whole request
  ServingInterval first_token;
  std::vector<std::string> warnings;  ///< the run's, and what was assumed here
};

/// What the row leaves open is settled so: no layout: the one of the highest throughput among
/// powers of two of tensor-parallel devices, or as many groups that share the experts; no prompt
/// length: the answer's; no cache format: 8 bits with 8-bit activations, else 16. Errors: a model
/// that is no language model, no output length.
[[nodiscard]] Result<ServingEstimate> estimate_serving(const ServingRun& run,
                                                       const Calibration& calibration);

/// The job alone. Precondition for the fitting program: the row states its layout.
[[nodiscard]] Result<ServingJob> serving_job_of(const ServingRun& run,
                                                std::vector<std::string>& warnings);

/// Constants of the job; a power limit below the rated power slows the clock. With the network
/// between scale-up domains where the job's instance spans several of the run's.
[[nodiscard]] ServingConstants constants_of(const ServingJob& job, const ServingRun& run,
                                            const Calibration& calibration);

}  // namespace orrery

// verbs/compare/inference_benchmark.hpp - published results of MLPerf Inference beside what the
// cost model predicts for the same services.
#pragma once

#include <string>
#include <string_view>

#include "perf/facts.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

inline constexpr std::string_view kInferenceBenchmark = "mlperf:inference";

/// Whether a group of a run file is one of its rounds.
[[nodiscard]] inline bool is_inference_benchmark(std::string_view group) {
  return group.starts_with("mlperf_inf_");
}

/// Output tokens a second at full load, and for rows with a rate of requests the mean times to the
/// first token and between tokens at that rate, measured and predicted; means of the deviations by
/// scenario. Errors: no such file; no row of the benchmark in it.
[[nodiscard]] Result<VerbAnswer> report_inference_benchmark(const Facts& facts,
                                                            const std::string& runs);

}  // namespace orrery

// verbs/compare/benchmark_answer.hpp - published measurements of a benchmark beside what the cost
// model predicts for the same runs.
#pragma once

#include <string>

#include "perf/facts.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct BenchmarkQuestion {
  std::string name;  ///< "mlperf:gpt3", "mlperf:inference"
  std::string runs;  ///< a run file, with the measurements in it; empty: that of the kind of runs
};

/// Errors: no such file; no row of the benchmark in it, with the names of its benchmarks.
[[nodiscard]] Result<VerbAnswer> report_benchmark(const Facts& facts,
                                                  const BenchmarkQuestion& question);

}  // namespace orrery

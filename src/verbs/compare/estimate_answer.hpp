// verbs/compare/estimate_answer.hpp - the answer of `orrery estimate`: predictions for the rows of
// a file of training and serving runs.
#pragma once

#include <string>
#include <vector>

#include "perf/runs/run_file.hpp"
#include "planner/economics.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct EstimateReport {
  /// The text is one table of training runs, one of services; the JSON has every row in file order.
  VerbAnswer answer;
  std::string refusals;  ///< "ID: why\n" for each row without a prediction
  std::string closing;   ///< one line with their number; empty: there are none
};

/// Predicts every row; a row without a prediction stops no other.
[[nodiscard]] EstimateReport estimate_rows(const PlannerFacts& facts, const std::vector<Run>& runs);

/// Errors: those of the facts and of RunFile::load().
[[nodiscard]] Result<EstimateReport> report_estimates(const CommandOptions& options,
                                                      const std::string& path);

}  // namespace orrery

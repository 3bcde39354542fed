// verbs/training/training_answer.hpp - the answer of `orrery report`: a run of orrery-train, beside
// an unbroken one and its prediction.
#pragma once

#include <string>

#include "verbs/local/local_plan.hpp"
#include "verbs/training/training_html.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Directories and files as typed; empty: not given.
struct TrainingReportCall {
  std::string run;
  std::string unbroken;
  std::string job;   ///< JSON of a job, with its bill
  std::string kill;  ///< JSON: pids, node, step, at
  std::string out;   ///< HTML file to write
  LocalPlanFiles prediction;
};

/// Returns the summary of a story; `bill` is the job's, an object, or null.
[[nodiscard]] VerbAnswer training_summary(const TrainingStory& story, const Json& bill);

/// Reads the runs and writes the page; fails, after it is shown, if the two runs did not end in the
/// same state. A doubt about the prediction goes to options.message.
/// Errors: files that cannot be read or are no such files, with their place; one of --training and
/// --calibration alone; a run without steps where there is a prediction.
[[nodiscard]] Result<JudgedAnswer> report_training(const CommandOptions& options,
                                                   const TrainingReportCall& call);

}  // namespace orrery

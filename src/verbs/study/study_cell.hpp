// verbs/study/study_cell.hpp - one cell of a study: exactly the work of `simulate`, `simulate
// --serve` or `plan` with these options.
//
// Cells share no mutable state, so that any number of them may run at once.
#pragma once

#include <vector>

#include "twin/study/study_run.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

struct CellQuestion {
  StudyRun run = StudyRun::kSimulate;
  std::string file;  ///< path of the study; relative paths are looked for beside it first
  const Study::CellFiles* asked;  ///< must outlive the question
  std::uint32_t repeat = 0;       ///< added to the seed
};

/// Values in the order of study_figures. Errors: those of the verb, at the lines of the study.
[[nodiscard]] Result<std::vector<double>> run_cell(const CommandOptions& options,
                                                   const CellQuestion& question);

}  // namespace orrery

// twin/study/study_report.hpp - the answers of a study as a table, a page with plots, JSON and CSV.
//
// Pure: equal answers give equal bytes. Cost: O(points x figures).
#pragma once

#include <string>
#include <vector>

#include "base/format/field_writer.hpp"
#include "twin/study/study_run.hpp"

namespace orrery {

struct StudyAnswers {
  const Study& study;
  std::vector<CellOutcome> outcomes;  ///< by study_cells
  std::string command;                ///< command line of the user
};

/// A row for each point and a column for each figure shown; below, why points have none.
[[nodiscard]] std::string study_text(const StudyAnswers& answers);

/// One self-contained page: the plots, then the table.
[[nodiscard]] std::string study_html(const StudyAnswers& answers);

/// {name, title, question, run, seeds, axes, figures, points}; a figure of a point is its mean and,
/// with several seeds, low and high; null where there is none. `against_first` of a point holds
/// these values for its difference, on equal seeds, to the first point under its conditions.
[[nodiscard]] Json study_json(const StudyAnswers& answers);

/// A row for each cell, with every figure of its kind of run.
[[nodiscard]] std::string study_csv(const StudyAnswers& answers);

}  // namespace orrery

// twin/study/study_run.hpp - runs the cells of a study on several threads, and sums up their
// results: the mean of a point's seeds with its interval.
//
// Results are in the order of the cells whatever the number of threads, so equal studies give equal
// bytes. The caller supplies the function that runs a cell; it is called from several threads at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "twin/study/study_spec.hpp"

namespace orrery {

/// One value for each axis, and the number of the repeat.
struct StudyCell {
  std::vector<std::size_t> values;
  std::uint32_t repeat = 0;
};

/// The product of the axes: repeats vary fastest, then the last axis.
[[nodiscard]] std::vector<StudyCell> study_cells(const StudySpec& spec);

/// Figures in the order of StudySpec::figures, or why there are none.
struct CellOutcome {
  std::vector<double> figures;
  std::string failure;
};

struct CellRunner {
  std::size_t cells = 0;
  std::size_t threads = 1;
  std::function<Result<std::vector<double>>(std::size_t)> run;
  /// Called after each cell by one thread at a time with the number of cells done; may be empty.
  std::function<void(std::size_t)> done = {};
};

/// Runs the cells. A cell that is infeasible is an outcome. Errors: the first cell, in their order,
/// whose input is wrong; cells after it may then not be run.
[[nodiscard]] Result<std::vector<CellOutcome>> run_cells(const CellRunner& runner);

/// Mean and, for two or more values, its 95 % interval by Student's t.
struct Estimate {
  double mean = 0;
  double low = 0;
  double high = 0;
  std::uint32_t count = 0;  ///< number of values; 0: the mean is NaN
};

/// The estimate over the finite values. O(n).
[[nodiscard]] Estimate estimate_of(const std::vector<double>& values);

/// All repeats with the same values of the axes.
struct StudyPoint {
  std::vector<std::size_t> values;
  std::vector<Estimate> figures;  ///< of the repeats that have figures
  std::uint32_t failed = 0;       ///< repeats
  std::string failure;            ///< failure of the first of them
};

/// The points in the order of the cells. The interval of values of which none is negative ends at
/// 0. Precondition: one outcome a cell.
[[nodiscard]] std::vector<StudyPoint> study_points(const StudySpec& spec,
                                                   const std::vector<CellOutcome>& outcomes);

}  // namespace orrery

// twin/study/study_pairs.hpp - compares, seed by seed, points of a study that differ by choice
// alone.
//
// Each seed is a trace of its own, and the result of a policy depends more on the trace than on the
// policy. The difference on equal seeds leaves that out. Pure. Cost: O(cells x figures).
#pragma once

#include <vector>

#include "twin/study/study_run.hpp"

namespace orrery {

/// Whether an axis varies a condition that is not a choice (the work, the faults), so that figures
/// of its values do not compare.
[[nodiscard]] bool is_condition(const StudyAxis& axis);

/// The values of a point on the axes that are conditions.
[[nodiscard]] std::vector<std::size_t> conditions_of(const StudySpec& spec,
                                                     const StudyPoint& point);

struct StudyPair {
  std::size_t point = 0;
  std::size_t base = 0;               ///< the first point under the same conditions
  std::vector<Estimate> differences;  ///< by figure: the point's less the base's, by seed
};

/// A pair for every point but the first under its conditions, in their order; none if there is a
/// single seed. Precondition: one outcome a cell.
[[nodiscard]] std::vector<StudyPair> study_pairs(const StudySpec& spec,
                                                 const std::vector<CellOutcome>& outcomes);

}  // namespace orrery

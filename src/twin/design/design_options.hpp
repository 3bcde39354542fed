// twin/design/design_options.hpp - which types could do the work of a design, how much of it within
// power and money, and which of them is best.
//
// The mix is kept: w units of work are w x share x (rate of the reference / rate of the type)
// accelerators of the type that does it, so power and cost are linear in w and the largest w is
// their nearer limit. Works are divided between two types in every way. Pure.
#pragma once

#include <string>
#include <vector>

#include "twin/design/design.hpp"

namespace orrery {

/// The first candidate that does all the work, else the first that does any.
[[nodiscard]] std::string reference_of(const Design& design);

/// Accelerators of its type that one unit of the mix takes for work `work`.
[[nodiscard]] double accelerators_for(const Design& design, const DesignOption& option,
                                      std::size_t work);

/// Each candidate that does all the work, and the best division between two where it beats them by
/// 3 %: best first, ties by position. Errors: kInfeasible, no candidates together do all the work,
/// with each one's reason. O(candidates^2 x 2^works).
[[nodiscard]] Result<std::vector<DesignOption>> design_options(const Design& design);

/// Writes into every other option why it was not chosen.
void explain_others(Design& design);

}  // namespace orrery

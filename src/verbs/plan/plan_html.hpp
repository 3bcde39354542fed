// verbs/plan/plan_html.hpp - plans as one self-contained page: no script, no other file.
#pragma once

#include <string>

#include "verbs/plan/plan_request.hpp"

namespace orrery {

/// Writes a table of the plans, and each step as a bar of its terms, all bars to one scale.
[[nodiscard]] std::string answer_html(const PlanAnswer& answer, const PlanRequest& request);

}  // namespace orrery

// verbs/plan/plan_html.hpp - plans as one page that needs no other file.
#pragma once

#include <string>

#include "verbs/plan/plan_request.hpp"

namespace orrery {

/// Writes a table of the plans, each step as a bar of its longest terms, all terms as a table, and
/// the assumptions. Precondition: there is a plan.
[[nodiscard]] std::string answer_html(const PlanAnswer& answer, const PlanRequest& request);

}  // namespace orrery

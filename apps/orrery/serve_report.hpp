// apps/orrery/serve_report.hpp - plans of inference services, for programs and for people.
#pragma once

#include <string>

#include "apps/orrery/serve_request.hpp"

namespace orrery {

/// {plans, by_accelerator, best_by, assumptions, refused, terms, layouts}; unpublished figures are
/// null.
[[nodiscard]] Json serving_answer_json(const ServingAnswer& answer, const ServeRequest& request);

/// A table, and the best plan explained.
[[nodiscard]] std::string serving_answer_text(const ServingAnswer& answer,
                                              const ServeRequest& request);

}  // namespace orrery

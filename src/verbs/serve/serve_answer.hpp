// verbs/serve/serve_answer.hpp - plans of inference services, for programs and for people.
#pragma once

#include <string>

#include "base/format/field_writer.hpp"
#include "verbs/serve/serve_request.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Returns {plans, by_accelerator, apart, best_by, assumptions, refused, terms, layouts}; figures
/// that are not published are null.
[[nodiscard]] Json serving_answer_json(const ServingAnswer& answer, const ServeRequest& request);

/// Returns a table, and an explanation of the best plan.
[[nodiscard]] std::string serving_answer_text(const ServingAnswer& answer,
                                              const ServeRequest& request);

/// The answer of `orrery plan --serve`: the plans, or the command of `emit`, whose text is to be
/// printed byte for byte. Errors: those of serve_request(), plan_serving() and
/// serving_launch_text().
[[nodiscard]] Result<VerbAnswer> report_serving(const CommandOptions& options,
                                                const ServeCall& call);

}  // namespace orrery

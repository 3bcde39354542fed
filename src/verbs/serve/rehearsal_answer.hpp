// verbs/serve/rehearsal_answer.hpp - plans that were rehearsed with requests, for people and
// programs.
#pragma once

#include "verbs/serve/rehearsed_plan.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Rehearses the plans with the request's trace, puts a table of them before the text of the
/// answer, and `rehearsed` into its JSON. Precondition: the request has a trace.
void add_rehearsal(const ServeRequest& request, const ServingAnswer& answer, VerbAnswer& shown);

}  // namespace orrery

// verbs/nodes/hold_answer.hpp - the nodes that resource managers lend to a running cluster.
//
// Functions of one call of a verb.
#pragma once

#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// Returns the holds as a table, and under it a line for each manager with what is wrong there.
[[nodiscard]] std::string holds_text(const v1::ListHoldsResponse& holds, const LiveText& text);

/// Programs get a list of the holds. Errors: those of the controller.
[[nodiscard]] Result<LiveAnswer> answer_holds(const LiveCall& call);

}  // namespace orrery

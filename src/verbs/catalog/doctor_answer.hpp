// verbs/catalog/doctor_answer.hpp - the answer of `orrery doctor`: what is wrong with this machine,
// or with the machines of a running cluster.
#pragma once

#include <vector>

#include "node/machine/machine_check.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Shows the findings in their order, a few nodes by name with each; fails if there are problems,
/// with their number. The text is escaped for a terminal, and coloured.
[[nodiscard]] JudgedAnswer doctor_report(const std::vector<CheckFinding>& findings, Colour colour);

/// Looks at this machine for about a second. Errors: those of the catalog.
[[nodiscard]] Result<JudgedAnswer> report_machine(const CommandOptions& options);

/// Compares the nodes of a cluster. Errors: those of the controller.
[[nodiscard]] Result<JudgedAnswer> report_live_fleet(const CommandOptions& options,
                                                     LiveSession& session);

}  // namespace orrery

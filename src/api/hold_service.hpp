// api/hold_service.hpp - what operators see of the resource managers that lend nodes.
#pragma once

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// The holds in the order in which they were asked for, and their managers. O(holds + nodes).
[[nodiscard]] v1::ListHoldsResponse holds_view(const Controller& controller);

/// Returns the time of the nodes that a manager has lent, and lends now. O(holds).
[[nodiscard]] v1::LentTime lent_time(const Controller& controller, const std::string& manager);
/// Returns that time for each manager that lends nodes, or has. O(managers x holds).
[[nodiscard]] std::vector<v1::LentTime> lent_times(const Controller& controller);

/// Returns what the managers say of nodes that they do not lend now, for a job that waits for
/// nodes: "slurm lends 2 of 4 nodes; pilot-3-7 waits (Resources)". It names no hold of another job,
/// see hold_notes(). Empty: no manager has nodes.
[[nodiscard]] std::string waiting_holds_text(const Controller& controller, JobId job);

/// Adds ListHolds. The controller outlives the table.
void add_hold_methods(MethodTable& table, Controller& controller);

}  // namespace orrery

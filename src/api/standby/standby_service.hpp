// api/standby/standby_service.hpp - what a controller says of its part in a shared log: whether it
// leads, and how far behind the leader a standby is.
//
// On the controller's loop. Any caller may ask a standby, which knows no tokens: the answers hold
// nothing of jobs, tenants or users. A leader answers viewers.
#pragma once

#include <functional>
#include <string>

#include "api/grpc/method_table.hpp"
#include "executor/controller.hpp"
#include "executor/start/log_sight.hpp"

namespace orrery {

/// Returns how far a standby is now.
using AskProgress = std::function<StandbyProgress()>;

/// The methods of a standby.
[[nodiscard]] MethodTable standby_methods(AskProgress progress);
/// Adds the same methods of a controller that leads, which outlives the table.
void add_controller_method(MethodTable& table, const Controller& controller);

/// Returns the line of a standby's /healthz. `leader`: HOST:PORT of its HTTP server; empty: it is
/// not known.
[[nodiscard]] std::string standby_health(const StandbyProgress& progress,
                                         const std::string& leader);

}  // namespace orrery

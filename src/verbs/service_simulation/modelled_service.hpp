// verbs/service_simulation/modelled_service.hpp - a Serve file and a trace of requests as a service
// in virtual time.
//
// Loaded from options. Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serving/scaling/scale_plan.hpp"
#include "twin/serving/service_setup.hpp"
#include "verbs/command_options.hpp"
#include "verbs/service_simulation/service_options.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

struct ModelledService {
  std::string name;
  RequestTrace trace;
  ServiceSetup setup;
  std::optional<ScaleTerms> scaling;  ///< none: the number of replicas stays
  std::vector<RoutePolicy> policies;  ///< by which it is played; at least one
  std::vector<std::string> notes;     ///< what was drawn, fitted and assumed
};

/// Errors: those of the files, with their line; anything wrong in an option, naming it; a spec that
/// is no service; no pace.
[[nodiscard]] Result<ModelledService> load_modelled_service(const CommandOptions& options,
                                                            const ServiceSimulationOptions& asked);

}  // namespace orrery

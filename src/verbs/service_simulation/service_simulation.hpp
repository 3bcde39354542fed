// verbs/service_simulation/service_simulation.hpp - `simulate --serve`: plays a trace of requests
// against a service, and reports its latencies, what it sheds and what it costs.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "twin/serving/service_figures.hpp"
#include "verbs/service_simulation/modelled_service.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// What one way of routing came to.
struct PlayedService {
  std::string policy;
  ServiceFigures figures;
  std::optional<ServiceFigures> unscaled;  ///< with as many replicas as it had at most, all along
};

/// Writes the files of --out. Errors: those of load_modelled_service(); of writing.
[[nodiscard]] Result<VerbAnswer> simulate_service(const CommandOptions& options,
                                                  const ServiceSimulationOptions& asked);

[[nodiscard]] std::string service_text(const ModelledService& service,
                                       std::span<const PlayedService> runs);
[[nodiscard]] Json service_json(const ModelledService& service,
                                std::span<const PlayedService> runs);

}  // namespace orrery

// verbs/service_simulation/accelerator_pace.hpp - how fast the replicas of a service are on a type
// of accelerator, what their caches hold and what they cost, by the cost model of serving.
//
// A replica's accelerators divide each layer (tensor parallelism). Cost: some hundred predictions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/command_options.hpp"
#include "verbs/service_simulation/engine_pace.hpp"

namespace orrery {

struct AcceleratorQuestion {
  std::string accelerator;
  std::string model;
  std::uint32_t accelerators = 1;  ///< of a replica
  std::string engine = "vllm";
  double prompt_tokens = 1;  ///< of a request, on average
  double output_tokens = 1;
};

struct AcceleratorPace {
  std::string name;  ///< of the accelerator
  EnginePace engine;
  double usd_h = 0;  ///< of a replica; 0: no price is known
  double watts = 0;  ///< of a replica; 0: unknown
  double watts_idle = 0;
  std::vector<std::string> notes;
};

/// Errors: an unknown accelerator or model, a model that does not fit.
[[nodiscard]] Result<AcceleratorPace> pace_on_accelerator(const CommandOptions& options,
                                                          const AcceleratorQuestion& question);

}  // namespace orrery

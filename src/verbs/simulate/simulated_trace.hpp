// verbs/simulate/simulated_trace.hpp - the jobs of a simulation, from a file or generated.
#pragma once

#include <optional>

#include "verbs/simulate/simulated_fleet.hpp"
#include "workload/gavel_throughputs.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {

struct SimulatedTrace {
  Trace trace;
  std::optional<GavelThroughputs> throughputs;
  Instant begin;  ///< of the simulation: --from, or the first submission; zero: generated

  /// `devices`: those of the fleet, for the load of a generated trace. Notes rows that were left
  /// out. Errors: those of the files, with their line; anything wrong in an option, naming it.
  [[nodiscard]] static Result<SimulatedTrace> load(const SimulateOptions& asked,
                                                   const SimulatedFleet::Loading& loading,
                                                   std::uint32_t devices);

  /// Whether the trace has dates of submissions; else it begins at zero. No trace with dates is
  /// older than 2001.
  [[nodiscard]] bool dated() const { return begin > Instant() + Duration::seconds(1'000'000'000); }
};

}  // namespace orrery

// verbs/simulate/simulated_world.hpp - what happens to the fleet of a simulation: failures,
// arrivals, events at stated times, prices and carbon of electricity, the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware/failure_spec.hpp"
#include "twin/faults/planned_events.hpp"
#include "twin/policy_run.hpp"
#include "verbs/simulate/simulated_trace.hpp"

namespace orrery {

/// Returns the profile of --failures, by name or file; none: nothing fails. Errors: those of the
/// file, with their line; an unknown name.
[[nodiscard]] Result<std::optional<FailureSpec>> failures_asked_for(const SimulateOptions& asked,
                                                                    const Catalog& catalog,
                                                                    SpecFiles& files);

struct SimulatedWorld {
  std::optional<FailureSpec> failures;
  std::vector<Instant> arrivals;  ///< by node; empty: all are there
  PlannedEvents planned;
  std::optional<StepSeries<DollarsPerJoule>> electricity;
  std::optional<StepSeries<GramsCo2PerJoule>> carbon;
  Instant until = Instant::max();
  std::uint32_t spares = 0;  ///< nodes kept back

  /// What loading rests on, and what it adds to.
  struct Loading {
    const SimulatedFleet& fleet;
    const SimulatedTrace& trace;
    SimulatedFleet::Loading of;
  };
  /// Loads all but the failures. Errors: those of the files, with their line; anything wrong in an
  /// option, naming it.
  [[nodiscard]] Status load(const SimulateOptions& asked, const Loading& loading);

 private:
  [[nodiscard]] Status load_series(const SimulateOptions& asked, const Loading& loading);
  [[nodiscard]] Status load_arrivals(const std::string& list, const Loading& loading);
  [[nodiscard]] Status load_events(const std::string& name, const Loading& loading);
};

}  // namespace orrery

// verbs/simulate/simulate_request.hpp - the input of the verb `simulate`, as files and options: a
// fleet, a trace, policies, failures, series.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "twin/policy_run.hpp"
#include "verbs/command_options.hpp"
#include "verbs/simulate/named_runs.hpp"
#include "verbs/simulate/simulated_fleet.hpp"
#include "verbs/simulate/simulated_trace.hpp"
#include "verbs/simulate/simulated_world.hpp"

namespace orrery {

/// The loaded input, at stable addresses.
class SimulateRequest {
 public:
  SimulateRequest() = default;

  /// Errors: those of the files, with their line; anything wrong in an option, naming it.
  [[nodiscard]] static Result<std::unique_ptr<SimulateRequest>> load(const CommandOptions& options,
                                                                     const SimulateOptions& asked);

  [[nodiscard]] const std::vector<NamedRun>& policies() const { return policies_; }
  [[nodiscard]] const Trace& trace() const { return trace_.trace; }
  [[nodiscard]] const TraceJobs& jobs() const { return jobs_; }
  [[nodiscard]] const ControlFacts& cluster() const { return fleet_.cluster(); }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_.notes; }
  /// Returns the values assumed for prices and power that were not given or published.
  [[nodiscard]] const std::vector<std::string>& assumptions() const { return notes_.assumptions; }
  [[nodiscard]] const ReplayRules& rules() const { return rules_; }
  [[nodiscard]] Instant begin() const { return trace_.begin; }
  [[nodiscard]] const std::optional<MeasureWindow>& measure() const { return measure_; }
  [[nodiscard]] Information information() const { return information_; }
  /// Whether the trace has dates of submissions; else it begins at zero.
  [[nodiscard]] bool dated() const { return trace_.dated(); }
  /// The texts of fleet, tenants, policies and failures, as they were read.
  [[nodiscard]] const SpecFiles& files() const { return files_; }

  /// Returns the inputs of one policy, for run_policy.
  [[nodiscard]] PolicyRunInputs inputs(const NamedRun& run);
  /// Error: a series of electricity prices where no node is owned, so that none is paid.
  [[nodiscard]] Status check_prices(const SimulateOptions& asked) const {
    return fleet_.check_prices(asked);
  }
  /// Returns the job of that name. Errors: there is none, with the nearest name.
  [[nodiscard]] Result<JobId> find(const std::string& name) const;

 private:
  [[nodiscard]] Status load_measure(const std::string& window);
  [[nodiscard]] Status make_jobs(const SimulateOptions& asked);
  void set_speeds(const SimulateOptions& asked, TraceJobOptions& options);
  void note_jobs();

  SpecFiles files_;
  ReplayRules rules_;
  Information information_ = Information::kOracle;
  RunNotes notes_;
  SimulatedFleet fleet_;
  std::vector<NamedRun> policies_;
  SimulatedTrace trace_;
  SimulatedWorld world_;
  TraceJobs jobs_;
  WorldTiming timing_;
  std::uint64_t seed_ = 1;
  std::optional<MeasureWindow> measure_;
};

}  // namespace orrery

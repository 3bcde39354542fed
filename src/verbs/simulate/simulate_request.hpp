// verbs/simulate/simulate_request.hpp - the input of the verb `simulate`, as files and options: a
// fleet, a trace, policies, failures, series.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "twin/faults/planned_events.hpp"
#include "twin/policy_run.hpp"
#include "twin/series_csv.hpp"
#include "verbs/command_options.hpp"
#include "verbs/plan/spec_files.hpp"
#include "workload/gavel_throughputs.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct SimulateOptions {
  std::string fleet;
  std::string accelerators;
  std::string price;  ///< how the machines of `accelerators` are paid
  std::string trace;
  std::string generate;    ///< style of a generated trace
  std::uint32_t jobs = 0;  ///< jobs to generate; 0: as many as `span` has
  std::string span;
  double load = 0.8;  ///< accelerator-seconds it asks for over those there are
  std::string format;
  std::vector<std::string> rows;  ///< "column=value": only these
  std::string from;
  std::string to;
  std::string tenants;
  std::string policies = "hardware-aware";
  /// The version of a built-in policy where `policies` states none: that of the replayed record; 0:
  /// the newest version.
  std::uint32_t policy_version = 0;
  std::string rules = "orrery";
  std::string information = "oracle";
  std::string failures = "none";
  std::string arrivals;
  std::string events;  ///< a file of events at stated times
  std::string throughputs;
  std::string prices;
  std::string carbon;
  std::string until;
  std::string measure;  ///< "FROM..TO": figures are of the jobs submitted in this window
  std::string out;
  std::string record;
  std::string explain;
  std::string restart;
  std::string restart_policy = "at-once";
  std::string fencing;
  std::string warm_restart;
  std::string checkpoint_cost;
  std::string checkpoint_interval;
  std::uint64_t seed = 1;
  std::uint32_t spares = 0;
  enum class Flag : std::uint8_t { kNo, kYes };
  Flag bad_rows = Flag::kNo;  ///< yes: counted and left out
  Flag map = Flag::kNo;       ///< yes: models, kinds and ranges by the committed mapping
  SpecFiles files;
};

inline std::array<EnumWord<SimulateOptions::Flag>, 2> enum_words(SimulateOptions::Flag) {
  return {{{"false", SimulateOptions::Flag::kNo}, {"true", SimulateOptions::Flag::kYes}}};
}

/// The options that decide a run, under the names of the command line: the setup of a record, and
/// of a study's cells.
template <class Visitor, SameStruct<SimulateOptions> Self>
void describe(Visitor& visitor, Self& o) {
  visitor.optional("fleet", o.fleet);
  visitor.optional("accelerators", o.accelerators);
  visitor.optional("price", o.price);
  visitor.optional("trace", o.trace);
  visitor.optional("format", o.format);
  visitor.optional("where", o.rows);
  visitor.optional("from", o.from);
  visitor.optional("to", o.to);
  visitor.optional("skip_bad", o.bad_rows);
  visitor.optional("map", o.map);
  visitor.optional("throughputs", o.throughputs);
  visitor.optional("generate", o.generate);
  visitor.optional("jobs", o.jobs);
  visitor.optional("span", o.span);
  visitor.optional("load", o.load);
  visitor.optional("tenants", o.tenants);
  visitor.optional("policy", o.policies);
  visitor.optional("rules", o.rules);
  visitor.optional("information", o.information);
  visitor.optional("seed", o.seed);
  visitor.optional("failures", o.failures);
  visitor.optional("arrivals", o.arrivals);
  visitor.optional("events", o.events);
  visitor.optional("spares", o.spares);
  visitor.optional("restart", o.restart);
  visitor.optional("restart_policy", o.restart_policy);
  visitor.optional("fencing", o.fencing);
  visitor.optional("warm_restart", o.warm_restart);
  visitor.optional("checkpoint_cost", o.checkpoint_cost);
  visitor.optional("checkpoint_interval", o.checkpoint_interval);
  visitor.optional("prices", o.prices);
  visitor.optional("carbon", o.carbon);
  visitor.optional("until", o.until);
  visitor.optional("measure", o.measure);
}

/// Returns how the machines of --accelerators are paid: as given; else on demand, or owned where
/// prices of electricity are given. Empty: the fleet file decides.
[[nodiscard]] std::string price_of_accelerators(const SimulateOptions& asked);

struct NamedRun {
  std::string label;  ///< what results are called by; of one run alone
  Policy policy;
  std::string asked;  ///< the option it comes from
  /// Name of the run's files: letters, digits, '-' and '_' of the label, anything else as '_'.
  /// Unique among the runs of the command.
  std::string file_name = {};
};

/// The loaded input, at stable addresses.
class SimulateRequest {
 public:
  SimulateRequest() = default;

  /// Errors: those of the files, with their line; anything wrong in an option, naming it.
  [[nodiscard]] static Result<std::unique_ptr<SimulateRequest>> load(const CommandOptions& options,
                                                                     const SimulateOptions& asked);

  [[nodiscard]] const std::vector<NamedRun>& policies() const { return policies_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const TraceJobs& jobs() const { return jobs_; }
  [[nodiscard]] const ControlFacts& cluster() const { return *cluster_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Returns the values assumed for prices and power that were not given or published.
  [[nodiscard]] const std::vector<std::string>& assumptions() const { return assumptions_; }
  [[nodiscard]] const ReplayRules& rules() const { return rules_; }
  [[nodiscard]] Instant begin() const { return begin_; }
  [[nodiscard]] const std::optional<MeasureWindow>& measure() const { return measure_; }
  [[nodiscard]] Information information() const { return information_; }
  /// Whether the trace has dates of submissions; else it begins at zero. No trace with dates is
  /// older than 2001.
  [[nodiscard]] bool dated() const { return begin_ > Instant() + Duration::seconds(1'000'000'000); }
  /// The texts of fleet, tenants, policies and failures, as they were read.
  [[nodiscard]] const SpecFiles& files() const { return files_; }

  /// Returns the inputs of one policy, for run_policy.
  [[nodiscard]] PolicyRunInputs inputs(const NamedRun& run);
  /// Error: a series of electricity prices where no node is owned, so that none is paid.
  [[nodiscard]] Status check_prices(const SimulateOptions& asked) const;
  /// Returns the job of that name. Errors: there is none, with the nearest name.
  [[nodiscard]] Result<JobId> find(const std::string& name) const;

 private:
  [[nodiscard]] Status load_facts(const CommandOptions& options, const SimulateOptions& asked);
  [[nodiscard]] Status load_cluster(const SimulateOptions& asked);
  [[nodiscard]] Result<FleetSpec> fleet_asked_for(const SimulateOptions& asked);
  [[nodiscard]] Result<NodeOwnership> ownership_asked_for(const SimulateOptions& asked);
  [[nodiscard]] Status load_trace_file(const SimulateOptions& asked);
  [[nodiscard]] Status load_throughputs(const SimulateOptions& asked, const std::string& trace);
  [[nodiscard]] Status make_trace(const SimulateOptions& asked);
  [[nodiscard]] Status load_policies(const SimulateOptions& asked);
  void name_files(const SimulateOptions& asked);
  [[nodiscard]] Status load_failures(const std::string& name);
  [[nodiscard]] Status load_measure(const std::string& window);
  [[nodiscard]] Status load_arrivals(const std::string& list);
  [[nodiscard]] Status load_events(const std::string& name);
  [[nodiscard]] Status load_series(const SimulateOptions& asked);
  template <class Value>
  [[nodiscard]] Result<StepSeries<Value>> played(const CsvSeries<Value>& series,
                                                 std::string_view option);
  [[nodiscard]] Status make_jobs(const SimulateOptions& asked);
  void set_speeds(const SimulateOptions& asked, TraceJobOptions& options);
  void note_jobs();
  void note_rows(const std::string& path, const TraceOptions& options);

  SpecFiles files_;
  Facts facts_;
  std::optional<FleetSpec> fleet_;     ///< of --fleet
  std::optional<Catalog> with_parts_;  ///< the catalog with smaller nodes
  std::unique_ptr<ControlFacts> cluster_;
  std::optional<TenantsSpec> tenants_;
  Trace trace_;
  TraceJobs jobs_;
  std::optional<GavelThroughputs> throughputs_;
  std::vector<NamedRun> policies_;
  ReplayRules rules_;
  Information information_ = Information::kOracle;
  std::optional<FailureSpec> failures_;
  std::vector<Instant> arrivals_;
  PlannedEvents planned_;
  std::optional<StepSeries<DollarsPerJoule>> electricity_;
  std::optional<StepSeries<GramsCo2PerJoule>> carbon_;
  std::vector<std::string> notes_;
  std::vector<std::string> assumptions_;
  std::uint64_t seed_ = 1;
  std::uint32_t spares_ = 0;
  WorldTiming timing_;
  Instant begin_;
  Instant until_ = Instant::max();
  std::optional<MeasureWindow> measure_;
};

}  // namespace orrery

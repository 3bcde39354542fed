#include "verbs/simulate/simulate_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/count_text.hpp"
#include "verbs/option_text.hpp"
#include "workload/trace/trace_mapping.hpp"

namespace orrery {
namespace {

/// Reads one end of a window: a time in a form of --from, or one since the simulation began.
Result<Instant> mark_of(const std::string& text, Instant begin) {
  if (Result<Instant> at = parse_trace_time(text)) return at;
  const Result<Seconds> since = quantity_option<Seconds>("measure", text);
  if (!since) {
    return wrong("measure",
                 fmt::format("\"{}\": expected a date such as 2017-10-02, or a time since "
                             "the start such as 1 day",
                             text));
  }
  return begin + Duration::from_seconds(since->value());
}

}  // namespace

// Reads "1 day..8 days" or "2017-10-02..2017-10-09"; an end that is left out is that of the
// simulation.
Status SimulateRequest::load_measure(const std::string& window) {
  if (window.empty()) return {};
  const std::size_t dots = window.find("..");
  if (dots == std::string::npos) {
    return wrong("measure", fmt::format("\"{}\": expected FROM..TO", window));
  }
  MeasureWindow measure{trace_.begin, Instant::max()};
  const std::string from = window.substr(0, dots);
  const std::string to = window.substr(dots + 2);
  if (!from.empty()) {
    Result<Instant> at = mark_of(from, trace_.begin);
    if (!at) return forward_error(at);
    measure.from = *at;
  }
  if (!to.empty()) {
    Result<Instant> at = mark_of(to, trace_.begin);
    if (!at) return forward_error(at);
    measure.to = *at;
  }
  const bool any = std::any_of(jobs_.jobs.begin(), jobs_.jobs.end(), [&](const PlayedJob& job) {
    return job.submit >= measure.from && job.submit <= measure.to;
  });
  if (!any) return wrong("measure", fmt::format("no job is submitted in {}", window));
  measure_ = measure;
  return {};
}

// Rates of --throughputs hold for the types of their names; what it has no rate of goes by --map.
void SimulateRequest::set_speeds(const SimulateOptions& asked, TraceJobOptions& options) {
  const Topology& fleet = fleet_.topology();
  const std::string first =
      asked.machines.accelerators.substr(0, asked.machines.accelerators.find(':'));
  options.reference = fleet.find_type(first).value_or(fleet.types_of(Topology::root()).front());
  if (asked.trace.map == SimulateOptions::Flag::kYes) {
    const Accelerator& recorded = fleet.accelerator(options.reference);
    options.speed = [&fleet, &recorded](std::string_view model, FleetTypeId type) {
      return type_speed(model_class(model), fleet.accelerator(type), recorded);
    };
    if (fleet.types_of(Topology::root()).size() > 1) {
      notes_.notes.push_back(fmt::format(
          "run times are assumed to be those on {}; the speed of other types for a "
          "model is an assumption of the mapping{}",
          recorded.id, trace_.throughputs ? ", except where --throughputs has a rate" : ""));
    }
  }
  if (!trace_.throughputs) return;
  std::vector<std::string> names(fleet.type_count());
  for (std::string& name : trace_.throughputs->accelerators()) {
    if (const auto type = fleet.find_type(name)) names[type->value()] = std::move(name);
  }
  options.throughput = [this, names](FleetTypeId type, const TraceJob& job) {
    return trace_.throughputs->steps_per_second(names[type.value()], {job.model, job.accelerators});
  };
}

Status SimulateRequest::make_jobs(const SimulateOptions& asked) {
  TraceJobOptions options;
  options.rules = rules_;
  options.information = information_;
  options.seed = asked.world.seed;
  options.plans = [this](const PlanKey& key) { return fleet_.cluster().plan(key); };
  Duration warm_restart = Duration::max();
  for (const auto& [name, text, target] :
       {std::tuple{"restart", &asked.restarts.restart, &options.restart},
        std::tuple{"warm-restart", &asked.restarts.warm, &warm_restart},
        std::tuple{"fencing", &asked.restarts.fencing, &timing_.fencing},
        std::tuple{"checkpoint-cost", &asked.restarts.checkpoint_cost, &options.checkpoint_cost},
        std::tuple{"checkpoint-interval", &asked.restarts.checkpoint_interval,
                   &options.checkpoint_interval}}) {
    if (text->empty()) continue;
    Result<Seconds> time = quantity_option<Seconds>(name, *text);
    if (!time) return forward_error(time);
    *target = Duration::from_seconds(time->value());
  }
  if (warm_restart != Duration::max()) timing_.warm_restart = warm_restart;
  if (!asked.restarts.checkpoint_interval.empty()) options.interval = CheckpointInterval::kGiven;
  Result<RestartPolicy> policy =
      word_option<RestartPolicy>("restart-policy", asked.restarts.policy);
  if (!policy) return forward_error(policy);
  options.restart_policy = *policy;
  set_speeds(asked, options);
  Result<TraceJobs> jobs = trace_jobs(trace_.trace, fleet_.cluster().resolve_context(trace_.begin),
                                      fleet_.cluster().classes(), options);
  if (!jobs) return forward_error(jobs);
  jobs_ = *std::move(jobs);
  note_jobs();
  return {};
}

void SimulateRequest::note_jobs() {
  if (!jobs_.oversized.empty()) {
    notes_.notes.push_back(fmt::format("{} can never run on this fleet; the first: {} ({})",
                                       counted(jobs_.oversized.size(), "job"),
                                       jobs_.oversized.front().name, jobs_.oversized.front().why));
  }
  if (jobs_.fewer_types > 0) {
    notes_.notes.push_back(
        fmt::format("jobs without a rate for every type of this fleet, which run only on the types "
                    "with a rate: {}; the first: {}",
                    jobs_.fewer_types, jobs_.first_of_fewer));
  }
  if (jobs_.cpu_jobs > 0) {
    notes_.notes.push_back(
        fmt::format("{} without accelerators: not simulated", counted(jobs_.cpu_jobs, "job")));
  }
}

Result<std::unique_ptr<SimulateRequest>> SimulateRequest::load(const CommandOptions& options,
                                                               const SimulateOptions& asked) {
  auto request = std::make_unique<SimulateRequest>();
  SimulateRequest& r = *request;
  r.seed_ = asked.world.seed;
  r.files_ = asked.files;
  Result<ReplayRules> rules = replay_rules(asked.scheduling.rules);
  if (!rules) return wrong("rules", rules.error().message);
  r.rules_ = *std::move(rules);
  Result<Information> information =
      word_option<Information>("information", asked.scheduling.information);
  if (!information) return forward_error(information);
  r.information_ = *information;
  const SimulatedFleet::Loading loading{r.rules_, r.files_, r.notes_};
  Status known = r.fleet_.load_facts(options, asked, r.files_);
  if (!known) return forward_error(known);
  Result<std::vector<NamedRun>> runs = named_runs(asked, r.information_, loading);
  if (!runs) return forward_error(runs);
  r.policies_ = *std::move(runs);
  Result<std::optional<FailureSpec>> failures =
      failures_asked_for(asked, r.fleet_.catalog(), r.files_);
  if (!failures) return forward_error(failures);
  r.world_.failures = *std::move(failures);
  if (Status status = r.fleet_.load_cluster(asked, loading); !status) return forward_error(status);
  Result<SimulatedTrace> trace =
      SimulatedTrace::load(asked, loading, r.fleet_.topology().device_count());
  if (!trace) return forward_error(trace);
  r.trace_ = *std::move(trace);
  Status world = r.world_.load(asked, {r.fleet_, r.trace_, loading});
  if (!world) return forward_error(world);
  if (Status status = r.make_jobs(asked); !status) return forward_error(status);
  if (Status status = r.load_measure(asked.results.measure); !status) return forward_error(status);
  return request;
}

PolicyRunInputs SimulateRequest::inputs(const NamedRun& run) {
  PolicyRunInputs in{.cluster = fleet_.cluster(),
                     .jobs = jobs_,
                     .label = run.label,
                     .policy = run.policy,
                     .rules = rules_};
  in.information = information_;
  in.timing = timing_;
  in.failures = world_.failures;
  in.seed = seed_;
  in.begin = trace_.begin;
  in.until = world_.until;
  in.measure = measure_;
  in.spares = world_.spares;
  in.arrivals = world_.arrivals;
  in.commands = world_.planned.commands;
  in.faults = world_.planned.faults;
  in.electricity = world_.electricity ? &*world_.electricity : nullptr;
  in.carbon = world_.carbon ? &*world_.carbon : nullptr;
  return in;
}

Result<JobId> SimulateRequest::find(const std::string& name) const {
  std::vector<std::string_view> names;
  names.reserve(jobs_.jobs.size());
  for (std::size_t i = 0; i < jobs_.jobs.size(); ++i) {
    names.emplace_back(jobs_.jobs[i].submission.request.name);
    if (names.back() == name) return JobId::at(i);
  }
  return input_error({},
                     fmt::format("--explain: no job \"{}\"{}", name, did_you_mean(name, names)));
}

}  // namespace orrery
